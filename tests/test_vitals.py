"""One measurement against plain numpy."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import KNOBS, SNAPSHOT_FIELDS
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.score import refresh_all, refresh_base
from elfmem_sim.kernel.state import N_FIELDS, TOP_K, WEIGHT
from elfmem_sim.kernel.vitals import measure
from elfmem_sim.scenario import Constitution, Identity, Measurement, Scenario, Workload
from elfmem_sim.simulate import prepare


def small_world(*, days=45, learns=2, size=4, dimension=5, recent_days=30, quiet=()) -> Scenario:
    return Scenario(
        name="small",
        description="A small state.",
        horizon_days=days,
        identity=Identity(dimension=dimension, drift_per_day=0.05),
        constitution=Constitution(size=size),
        workload=Workload(learns_per_day=learns, queries_per_day=4, quiet=quiet),
        measurement=Measurement(every_days=days - 1, queries=7, recent_days=recent_days),
    )


def lived(scenario: Scenario, arm: str = "baseline", seed: int = 3):
    agent, rules, calendar = prepare(scenario, ARMS[arm], seed)
    advance(agent, rules, calendar, 0, scenario.horizon_days)
    return agent, rules


def measured(agent, rules, day: int) -> dict[str, float]:
    out = np.full(N_FIELDS, np.nan)
    floats, ints = np.empty((2, TOP_K)), np.full((2, TOP_K), -1)
    query = np.empty(agent.topic.shape[1])
    measure(agent, rules, day, query, floats[0], ints[0], floats[1], ints[1], out)
    return dict(zip(SNAPSHOT_FIELDS, out.tolist(), strict=True))


def entropy(confidence: np.ndarray) -> float:
    shares = np.histogram(confidence, bins=10, range=(0, 1))[0] / len(confidence)
    return float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))


def recomputed(agent, rules, day: int) -> dict[str, float]:
    """Every vital by its definition, with whole arrays and without pruning."""
    count, size = int(agent.blocks[0]), agent.decay.shape[0]
    topic, self_topic = agent.topic[:count], agent.identity[day + 1]
    born = agent.birth_step[:count]
    constitutional = np.arange(count) < size
    reference = random.Random(99 + day)
    quality, best, recent, moat = [], [], [], []
    seen: set[int] = set()
    for _ in range(rules.vitals_queries):
        noise = [reference.gauss(0.0, rules.query_spread) for _ in range(topic.shape[1])]
        query = self_topic + np.array(noise)
        query /= np.linalg.norm(query)
        scores = 0.35 * (topic @ query + 1.0) / 2.0 + agent.standing[:count]
        allowed = np.flatnonzero(~constitutional | (agent.knobs[WEIGHT] > 0.0))
        top = allowed[np.argsort(-scores[allowed])][:TOP_K]
        seen |= set(top.tolist())
        nearest = np.argsort(-(topic @ query))[:TOP_K]
        quality.append(np.mean(topic[top] @ query) if len(top) else 0.0)
        best.append(np.mean(topic[nearest] @ query))
        recent.append(np.mean(day + 1 - born[top] < rules.recent_days) if len(top) else 0.0)
        moat.append(np.mean(constitutional[top]) if len(top) else 0.0)
    ego = agent.ego
    aligned = (topic[:size] @ self_topic + 1.0) / 2.0
    kept = (np.sum(topic[:size] * agent.origin, axis=1) + 1.0) / 2.0
    return {
        "day": day,
        "quality": np.mean(quality),
        "quality_ratio": np.mean(quality) / np.mean(best),
        "recent_reach": np.mean(recent),
        "ego_moat": np.mean(moat),
        "es_mean": ego.mean(),
        "es_max": ego.max(),
        "es_min": ego.min(),
        "es_concentration": ego.max() / ego.mean() if ego.mean() > 0.01 else 0.0,
        "const_alive": np.count_nonzero(ego > 0.01),
        "const_align_to_self": aligned.mean(),
        "retention": kept.mean(),
        "conf_entropy": entropy(agent.alpha[:count] / (agent.alpha + agent.beta)[:count]),
        "mean_evidence": np.mean((agent.alpha + agent.beta)[:count]),
        "p95_evidence": np.percentile((agent.alpha + agent.beta)[:count], 95),
        "top_k_diversity": len(seen) / (TOP_K * rules.vitals_queries),
        "n_blocks": count,
        "rescore_damage": 0.0,
        **dict(zip(KNOBS, agent.knobs, strict=True)),
    }


def state(agent) -> list[np.ndarray]:
    """Everything an agent is, its stream included; the probe stream is not part of it."""
    return [np.copy(array) for array in (*agent[:-2], *agent.stream)]


@pytest.mark.parametrize("arm", ["baseline", "architecture_m", "model_c", "model_d"])
@pytest.mark.parametrize("field", SNAPSHOT_FIELDS)
def test_vital_equals_its_definition(arm, field):
    agent, rules = lived(small_world(), arm)
    got, want = measured(agent, rules, 44), recomputed(agent, rules, 44)
    assert got[field] == pytest.approx(want[field], rel=0, abs=1e-12)


@given(
    seed=st.integers(0, 2**40),
    arm=st.sampled_from(["baseline", "architecture_m", "model_d"]),
    learns=st.integers(0, 3),
    size=st.integers(1, 7),
    dimension=st.integers(2, 9),
    days=st.integers(3, 40),
)
def test_vitals_equal_their_definitions_in_any_small_world(
    seed, arm, learns, size, dimension, days
):
    scenario = small_world(days=days, learns=learns, size=size, dimension=dimension)
    agent, rules = lived(scenario, arm, seed)
    got, want = measured(agent, rules, days - 1), recomputed(agent, rules, days - 1)
    assert got == pytest.approx(want, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("arm", list(ARMS))
def test_measuring_changes_nothing(arm):
    agent, rules = lived(small_world(), arm)
    before = state(agent)
    measured(agent, rules, 44)
    assert all(np.array_equal(a, b) for a, b in zip(before, state(agent), strict=True))


def test_measuring_twice_gives_the_same_bits():
    agent, rules = lived(small_world())
    assert measured(agent, rules, 44) == measured(agent, rules, 44)


def test_probe_queries_depend_on_the_day():
    agent, rules = lived(small_world())
    agent.identity[44] = agent.identity[45]
    assert measured(agent, rules, 43)["quality"] != measured(agent, rules, 44)["quality"]


def with_one_ordinary_block(age: int, *, recent_days: int = 30):
    """Four constitutional blocks that nobody asks for, and one ordinary block of this age."""
    agent, rules = lived(small_world(learns=0, recent_days=recent_days), "architecture_m")
    i = int(agent.blocks[0])
    agent.topic[i] = agent.identity[45]
    agent.alpha[i] = agent.beta[i] = 0.5
    agent.birth_step[i] = agent.used_step[i] = 45 - age
    agent.blocks[0] = i + 1
    refresh_base(agent, rules.exploration, i)
    refresh_all(agent, rules, 45)
    return agent, rules


@pytest.mark.parametrize(("age", "reach"), [(0, 1.0), (29, 1.0), (30, 0.0), (44, 0.0)])
def test_block_is_recent_only_below_thirty_days(age, reach):
    agent, rules = with_one_ordinary_block(age)
    assert measured(agent, rules, 44)["recent_reach"] == reach


def test_recent_days_is_the_scenarios():
    agent, rules = with_one_ordinary_block(7, recent_days=7)
    assert measured(agent, rules, 44)["recent_reach"] == 0.0


def test_quality_of_an_agent_with_nothing_to_return_is_zero():
    agent, rules = lived(small_world(learns=0), "architecture_m")
    vitals = measured(agent, rules, 44)
    assert vitals["quality"] == vitals["quality_ratio"] == vitals["recent_reach"] == 0.0


def test_ratio_is_one_when_every_block_is_returned():
    agent, rules = lived(small_world(learns=0, size=5))
    assert measured(agent, rules, 44)["quality_ratio"] == pytest.approx(1.0, abs=1e-15)


def test_oracle_counts_the_constitution_where_attention_does_not():
    agent, rules = lived(small_world(), "architecture_m")
    agent.topic[:4] = agent.identity[45]
    before = measured(agent, rules, 44)
    agent.topic[:4] = -agent.identity[45]
    after = measured(agent, rules, 44)
    assert after["quality"] == before["quality"]
    assert after["quality_ratio"] > before["quality_ratio"]


def test_retention_is_one_until_the_constitution_changes():
    agent, rules = lived(small_world())
    assert measured(agent, rules, 44)["retention"] == pytest.approx(1.0, abs=1e-15)
    agent.topic[0] = -agent.origin[0]
    assert measured(agent, rules, 44)["retention"] == pytest.approx(0.75, abs=1e-15)


@pytest.mark.parametrize(
    ("ego", "concentration", "alive"),
    [
        ([8.0, 0.0, 0.0, 0.0], 4.0, 1),
        ([1.0, 1.0, 1.0, 1.0], 1.0, 4),
        ([0.02, 0.02, 0.0, 0.0], 0.0, 2),
        ([0.01, 0.0, 0.0, 0.0], 0.0, 0),
        ([0.0, 0.0, 0.0, 0.0], 0.0, 0),
    ],
)
def test_ego_statistics_count_from_a_hundredth_on(ego, concentration, alive):
    agent, rules = lived(small_world(), "model_c")
    agent.ego[:] = ego
    vitals = measured(agent, rules, 44)
    assert vitals["es_concentration"] == pytest.approx(concentration)
    assert vitals["const_alive"] == alive
    assert (vitals["es_max"], vitals["es_min"]) == (max(ego), min(ego))


def test_vitals_on_a_quiet_day_see_that_days_recency():
    # The last fortnight is quiet; standings must have aged to the day of the measurement.
    scenario = small_world(quiet=((31, 44),))
    agent, rules = lived(scenario)
    standing = agent.standing.copy()
    refresh_all(agent, rules, 45)
    assert np.array_equal(standing, agent.standing)
