"""Whole runs: the published values, and what must not change a run."""

import json
import math
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from original import ARMS as FILE_ARMS
from original import SCENARIOS

from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.fields import KNOBS, SNAPSHOT_FIELDS
from elfmem_sim.kernel.loop import advance
from elfmem_sim.review import require_elfmem
from elfmem_sim.scenario import Arm, Regime, Review, Scenario, load_scenario, parse_scenario
from elfmem_sim.simulate import Trajectory, as_record, prepare, simulate

PUBLISHED_ARMS = list(FILE_ARMS.values())
VALUES = json.loads(
    (Path(__file__).parent / "data" / "adr-0003-scenarios.json").read_text(encoding="utf-8")
)
SCORING_VITALS = {
    "conf_entropy", "mean_evidence", "p95_evidence", "top_k_diversity", "n_blocks",
}  # fmt: skip
OUR_OWN_VITALS = {"retention", "bedrock_moat", "rescore_damage", *KNOBS, *SCORING_VITALS}
OUR_OWN_KEYS = {"rescore_damage_mean", "rescore_damage_n"}
EIGHT_SEEDS = {0, 1, 2, 3, 4, 5, 6, 7}

SLOW_DRIFT = load_scenario("adr-0003/slow_drift")
USED = load_scenario("adr-0004/slow_drift")
BASELINE = ARMS["baseline"]
# Low enough for slow drift to be noticed every month.
EAGER = {"drift_threshold": 0.02, "cooldown_hours": 0.0}


def reviewing(**review) -> Arm:
    return ARMS["review"].model_copy(update={"review": Review(config=EAGER, **review)})


def changed(scenario: Scenario, **sections) -> Scenario:
    """The scenario with some keys changed, validated anew."""
    data = scenario.model_dump()
    for section, keys in sections.items():
        data[section] = {**data[section], **keys} if isinstance(keys, dict) else keys
    return Scenario.model_validate(data)


def assert_same_run(first: Trajectory, second: Trajectory) -> None:
    assert np.array_equal(first.snapshots, second.snapshots)
    assert np.array_equal(first.identity, second.identity)
    assert first.n_blocks == second.n_blocks
    assert first.self_query_concentration == second.self_query_concentration


def rows_on(trajectory: Trajectory, days) -> np.ndarray:
    return trajectory.snapshots[np.isin(trajectory.snapshots[:, 0], days)]


def angle_between(a: np.ndarray, b: np.ndarray) -> float:
    return 2.0 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(UserError, match="whole number"):
        simulate(SLOW_DRIFT, BASELINE, seed)


# The published values.


def published(scenario: str, arm: str) -> list[dict]:
    return [r for r in VALUES if r["scenario"] == scenario and FILE_ARMS[r["arm"]] == arm]


@pytest.mark.parametrize("arm", PUBLISHED_ARMS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_published_vital_of_every_seed_is_reproduced(scenario, arm):
    records = published(scenario, arm)
    assert {record["seed"] for record in records} == EIGHT_SEEDS
    world = load_scenario(f"adr-0003/{scenario}")
    for record in records:
        ours = as_record(simulate(world, ARMS[arm], record["seed"]), ARMS[arm])
        got = [{k: s[k] for k in s if k not in OUR_OWN_VITALS} for s in ours.pop("snapshots")]
        assert len(record["snapshots"]) == 13
        for mine, theirs in zip(got, record["snapshots"], strict=True):
            assert mine == pytest.approx(theirs, rel=0, abs=1e-9)
        assert ours["n_blocks"] == record["n_blocks"]
        assert ours["self_query_concentration"] == pytest.approx(
            record["self_query_concentration"], rel=0, abs=1e-9
        )


QUALITY_RATIO_PERCENT = {
    "stable": (85.3, 78.4, 76.8, 76.6),
    "slow_drift": (62.5, 72.4, 75.2, 76.8),
    "regime_change": (44.5, 77.6, 78.7, 70.5),
    "quiet_burst": (76.6, 77.0, 78.6, 74.4),
    "adversarial": (65.7, 77.3, 81.9, 76.4),
}
EGO_CONCENTRATION = {
    "stable": (9.65, 3.29),
    "slow_drift": (9.58, 3.36),
    "regime_change": (9.51, 3.38),
    "quiet_burst": (9.54, 3.38),
    "adversarial": (9.51, 3.29),
}


def mean_of_two_seeds(scenario: str, arm: str, field: str) -> float:
    runs = [simulate(load_scenario(f"adr-0003/{scenario}"), ARMS[arm], seed) for seed in (0, 1)]
    assert {run.snapshots[-1, 0] for run in runs} == {364}
    return sum(run.final(field) for run in runs) / 2


@pytest.mark.parametrize("arm", PUBLISHED_ARMS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_adr_0003_published_table(scenario, arm):
    percent = 100.0 * mean_of_two_seeds(scenario, arm, "quality_ratio")
    printed = QUALITY_RATIO_PERCENT[scenario][PUBLISHED_ARMS.index(arm)]
    assert f"{percent:.1f}" == f"{printed:.1f}"


@pytest.mark.parametrize("arm", ["model_c", "model_d"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_adr_0003_published_ego_concentration(scenario, arm):
    concentration = mean_of_two_seeds(scenario, arm, "es_concentration")
    printed = EGO_CONCENTRATION[scenario][("model_c", "model_d").index(arm)]
    assert f"{concentration:.2f}" == f"{printed:.2f}"


# Records.


def test_record_has_the_fields_of_the_published_values():
    record = as_record(simulate(SLOW_DRIFT, BASELINE, 0), BASELINE)
    assert set(record) - OUR_OWN_KEYS == set(VALUES[0])
    for snapshot in record["snapshots"]:
        assert set(snapshot) - OUR_OWN_VITALS == set(VALUES[0]["snapshots"][0])


def test_record_counts_in_integers():
    record = as_record(simulate(SLOW_DRIFT, ARMS["model_c"], 0), ARMS["model_c"])
    counts = [record["n_blocks"], record["seed"]]
    counts += [snapshot[key] for snapshot in record["snapshots"] for key in ("day", "const_alive")]
    assert {type(count) for count in counts} == {int}


def test_record_of_a_reviewed_run_survives_json():
    require_elfmem()
    trajectory = simulate(USED, reviewing(revert_probability=1.0), 3, explain=True)
    record = as_record(trajectory, ARMS["review"])
    assert len(record["reviews"]) == 12
    assert record["amendments"]
    again = json.loads(json.dumps(record))
    assert again["amendments"] == record["amendments"]
    assert again["snapshots"] == record["snapshots"]


def test_final_is_the_last_measured_day():
    trajectory = simulate(SLOW_DRIFT, BASELINE, 0)
    assert [trajectory.final(field) for field in SNAPSHOT_FIELDS] == trajectory.snapshots[
        -1
    ].tolist()


def test_run_is_named_by_scenario_arm_and_seed():
    trajectory = simulate(SLOW_DRIFT, BASELINE, 5)
    assert (trajectory.scenario, trajectory.arm, trajectory.seed) == (
        "adr-0003/slow_drift",
        "baseline",
        5,
    )


# Determinism.


@pytest.mark.parametrize("arm", list(ARMS))
def test_equal_arguments_give_equal_bits(arm):
    first = simulate(USED, ARMS[arm], 8)
    simulate(SLOW_DRIFT, BASELINE, 9)
    second = simulate(USED, ARMS[arm], 8)
    assert_same_run(first, second)
    assert first.reviews == second.reviews
    assert first.amendments == second.amendments


_DIGEST = """
import hashlib
from elfmem_sim.arms import ARMS
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import simulate
run = simulate(load_scenario("adr-0003/adversarial"), ARMS["model_d"], 4)
print(hashlib.sha256(run.snapshots.tobytes() + run.identity.tobytes()).hexdigest())
"""


def test_another_process_gives_equal_bits(capsys):
    there = subprocess.run(
        [sys.executable, "-c", _DIGEST], capture_output=True, text=True, check=True
    )
    exec(compile(_DIGEST, "digest", "exec"), {})
    assert there.stdout == capsys.readouterr().out


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1])
def test_self_walks_the_path_that_cpythons_generator_draws(seed):
    scenario = changed(SLOW_DRIFT, workload={"quiet": ((0, 364),)})
    reference = random.Random(seed)

    def perturbed(topic, sigma):
        out = topic + np.array([reference.gauss(0.0, sigma) for _ in range(8)])
        return out / np.linalg.norm(out)

    path = [perturbed(np.zeros(8), 1.0)]
    for _ in range(10):
        perturbed(path[0], 0.15)
    for _ in range(365):
        path.append(perturbed(path[-1], 0.020))
    identity = simulate(scenario, BASELINE, seed).identity
    np.testing.assert_allclose(identity, path, rtol=0, atol=1e-11)


@pytest.mark.parametrize("arm", list(ARMS))
@pytest.mark.parametrize("seed", [0, 2**62])
def test_seeds_at_the_ends_give_whole_runs(arm, seed):
    trajectory = simulate(USED, ARMS[arm], seed)
    assert trajectory.snapshots.shape == (13, len(SNAPSHOT_FIELDS))
    assert np.isfinite(trajectory.snapshots).all()
    assert 0.0 < trajectory.final("quality_ratio") <= 1.0


def test_different_seeds_give_different_runs():
    finals = {simulate(SLOW_DRIFT, BASELINE, s).final("quality") for s in (0, 1, 2**32, 2**62)}
    assert len(finals) == 4


# What measuring and the horizon must not change.


@pytest.mark.parametrize("arm", PUBLISHED_ARMS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_daily_measuring_leaves_the_measured_days_alone(scenario, arm):
    world = load_scenario(f"adr-0003/{scenario}")
    usual = simulate(world, ARMS[arm], 2)
    daily = simulate(world, ARMS[arm], 2, daily=True)
    assert daily.snapshots[:, 0].tolist() == list(range(1, 365))
    assert np.array_equal(rows_on(daily, usual.snapshots[:, 0]), usual.snapshots)
    assert np.array_equal(daily.identity, usual.identity)


def test_daily_measuring_and_explaining_leave_reviews_alone():
    arm = reviewing(proposer_noise=0.1, proposer_failure_rate=0.2)
    usual = simulate(USED, arm, 2)
    watched = simulate(USED, arm, 2, daily=True, explain=True)
    assert usual.amendments
    assert watched.amendments == usual.amendments
    assert np.array_equal(rows_on(watched, usual.snapshots[:, 0]), usual.snapshots)


def test_measuring_days_are_the_multiples_above_zero():
    world = changed(SLOW_DRIFT, measurement={"every_days": 100})
    assert simulate(world, BASELINE, 0).snapshots[:, 0].tolist() == [100, 200, 300]


@pytest.mark.parametrize("arm", list(ARMS))
@pytest.mark.parametrize("scenario", ["adr-0003/adversarial", "adr-0004/regime_change"])
def test_longer_horizon_begins_like_a_shorter_one(scenario, arm):
    one_year = load_scenario(scenario)
    two_years = changed(one_year, horizon_days=730)
    short, long = simulate(one_year, ARMS[arm], 6), simulate(two_years, ARMS[arm], 6)
    assert long.snapshots[-1, 0] == 728
    assert np.array_equal(long.snapshots[:13], short.snapshots)
    assert np.array_equal(long.identity[:366], short.identity)
    assert long.reviews[: len(short.reviews)] == short.reviews


# Pairing.


def lived(arm: str, days: int, scenario: Scenario = SLOW_DRIFT, seed: int = 5):
    agent, rules, calendar = prepare(scenario, ARMS[arm], seed)
    advance(agent, rules, calendar, 0, days)
    return agent


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_baseline_and_architecture_m_share_self_and_learned_blocks(scenario):
    world = load_scenario(f"adr-0003/{scenario}")
    baseline, m = lived("baseline", 365, world), lived("architecture_m", 365, world)
    assert np.array_equal(baseline.identity, m.identity)
    assert np.array_equal(baseline.topic, m.topic)
    assert np.array_equal(baseline.birth_step, m.birth_step)


@pytest.mark.parametrize("arm", ["model_c", "model_d"])
def test_models_c_and_d_share_self_and_blocks_with_baseline_on_the_first_day(arm):
    baseline, model = lived("baseline", 1), lived(arm, 1)
    assert np.array_equal(baseline.identity[:2], model.identity[:2])
    assert np.array_equal(baseline.topic[:15], model.topic[:15])


@pytest.mark.parametrize("arm", ["model_c", "model_d"])
def test_models_c_and_d_part_from_baseline_with_their_first_self_query(arm):
    baseline, model = lived("baseline", 2), lived(arm, 2)
    assert not np.array_equal(baseline.identity[2], model.identity[2])


def test_accepted_amendments_change_neither_self_nor_learned_blocks():
    scenario, seed = USED, 5
    reviewed = simulate(scenario, reviewing(), seed)
    assert reviewed.amendments
    baseline = simulate(scenario, BASELINE, seed)
    assert np.array_equal(reviewed.identity, baseline.identity)
    assert reviewed.n_blocks == baseline.n_blocks
    assert not np.array_equal(reviewed.snapshots, baseline.snapshots)


@pytest.mark.parametrize(
    ("review", "happened"),
    [
        ({}, "proposals"),
        ({"proposer_noise": 0.5}, "proposals"),
        ({"proposer_failure_rate": 0.5, "proposer_noise": 0.5}, "failed"),
        ({"proposer_failure_rate": 1.0}, "failed"),
        ({"cadence_days": 7}, "proposals"),
    ],
    ids=["plain", "noise", "failure_and_noise", "failure", "weekly"],
)
def test_review_that_accepts_nothing_is_the_baseline_bit_for_bit(review, happened):
    reviewed = simulate(USED, reviewing(accept_probability=0.0, **review), 5)
    assert sum(getattr(record, happened) for record in reviewed.reviews) > 0
    assert not reviewed.amendments
    assert_same_run(reviewed, simulate(USED, BASELINE, 5))


def test_review_at_shipped_settings_finds_too_little_history_in_the_published_workload():
    reviewed = simulate(SLOW_DRIFT, ARMS["review"], 5)
    assert all(record.insufficient_history for record in reviewed.reviews)
    assert_same_run(reviewed, simulate(SLOW_DRIFT, BASELINE, 5))


# Regimes.


def with_regime(day: int, **regime) -> Scenario:
    return changed(SLOW_DRIFT, identity={"regimes": (Regime(day=day, **regime).model_dump(),)})


@pytest.mark.parametrize("day", [0, 120, 364])
@pytest.mark.parametrize("degrees", [0.5, 60.0, 90.0, 180.0])
def test_angle_regime_turns_the_self_by_exactly_that_angle(day, degrees):
    path = simulate(with_regime(day, angle_degrees=degrees), BASELINE, 3).identity
    assert math.degrees(angle_between(path[day], path[day + 1])) == pytest.approx(
        degrees, rel=0, abs=1e-9
    )


def test_angle_regime_turns_each_seed_its_own_way():
    world = with_regime(0, angle_degrees=90.0)
    turned = [simulate(world, BASELINE, seed).identity[1] for seed in range(4)]
    assert len({tuple(direction) for direction in turned}) == 4


@pytest.mark.parametrize(("day", "back_to"), [(1, 0), (200, 100), (200, 199), (364, 0)])
def test_return_regime_restores_the_self_of_that_day(day, back_to):
    path = simulate(with_regime(day, return_to_day=back_to), BASELINE, 3).identity
    assert np.array_equal(path[day + 1], path[back_to + 1])


def test_regime_leaves_the_days_before_it_alone():
    changed_path = simulate(with_regime(200, angle_degrees=60.0), BASELINE, 3)
    usual = simulate(SLOW_DRIFT, BASELINE, 3)
    assert np.array_equal(changed_path.identity[:201], usual.identity[:201])
    early = range(1, 200)
    assert np.array_equal(rows_on(changed_path, early), rows_on(usual, early))


def test_blend_regime_mixes_old_self_and_new_direction_by_its_weights():
    # A direction spread of nearly nothing makes the new direction the old self.
    world = with_regime(50, blend=(0.3, 0.7), direction_spread=1e-9)
    path = simulate(world, BASELINE, 3).identity
    np.testing.assert_allclose(path[51], path[50], rtol=0, atol=1e-7)


def test_several_regimes_each_happen_on_their_day():
    regimes = (
        Regime(day=10, angle_degrees=40.0),
        Regime(day=11, blend=(0.5, 0.866)),
        Regime(day=12, return_to_day=9),
    )
    world = changed(SLOW_DRIFT, identity={"regimes": tuple(r.model_dump() for r in regimes)})
    path = simulate(world, BASELINE, 3).identity
    assert math.degrees(angle_between(path[10], path[11])) == pytest.approx(40.0)
    assert angle_between(path[11], path[12]) > 0.3
    assert np.array_equal(path[13], path[10])


# Workload.


def test_quiet_days_learn_nothing():
    world = changed(SLOW_DRIFT, workload={"quiet": ((10, 19), (15, 29), (364, 364))})
    assert simulate(world, BASELINE, 0).n_blocks == 10 + 5 * (365 - 21)


def test_quiet_days_ask_nothing():
    agent = lived("baseline", 365, changed(SLOW_DRIFT, workload={"quiet": ((0, 364),)}))
    assert agent.blocks[0] == 10
    assert set(agent.reinforcement[:10]) == {5.0}


def test_self_drifts_on_through_quiet_days():
    path = simulate(load_scenario("adr-0003/quiet_burst"), BASELINE, 0).identity
    assert all(angle_between(a, b) > 0.0 for a, b in pairwise(path[90:152]))


@pytest.mark.parametrize("weekdays", [(5, 6), (0,), tuple(range(7))])
def test_quiet_weekdays_recur_every_week_from_day_zero(weekdays):
    world = changed(SLOW_DRIFT, workload={"quiet_weekdays": weekdays})
    working = sum(day % 7 not in weekdays for day in range(365))
    assert simulate(world, BASELINE, 0).n_blocks == 10 + 5 * working


def test_quiet_weekdays_learn_only_on_the_others():
    world = changed(SLOW_DRIFT, workload={"quiet_weekdays": (5, 6)})
    agent = lived("baseline", 365, world)
    days = agent.birth_step[10 : agent.blocks[0]] - 1
    assert set(days % 7) == {0, 1, 2, 3, 4}


def test_quiet_weekdays_and_intervals_add_up():
    by_weekday = changed(SLOW_DRIFT, workload={"quiet_weekdays": (0,), "quiet": ((1, 3),)})
    by_interval = tuple((day, day) for day in range(0, 365, 7))
    spelled_out = changed(SLOW_DRIFT, workload={"quiet": (*by_interval, (1, 3))})
    assert_same_run(simulate(by_weekday, BASELINE, 1), simulate(spelled_out, BASELINE, 1))


def noisy(*intervals, **workload) -> Scenario:
    noise = tuple(
        {"first_day": first, "last_day": last, "outcome_noise": p} for first, last, p in intervals
    )
    return changed(SLOW_DRIFT, workload={"noise": noise, **workload})


@pytest.mark.parametrize("arm", PUBLISHED_ARMS)
def test_noise_interval_over_the_whole_horizon_is_plain_outcome_noise(arm):
    adversarial = load_scenario("adr-0003/adversarial")
    assert_same_run(
        simulate(noisy((0, 364, 0.15)), ARMS[arm], 4), simulate(adversarial, ARMS[arm], 4)
    )


def test_noise_interval_overrides_the_horizons_noise():
    assert_same_run(
        simulate(noisy((0, 364, 0.0), outcome_noise=0.15), BASELINE, 4),
        simulate(SLOW_DRIFT, BASELINE, 4),
    )


def test_later_noise_interval_overrides_an_earlier_one():
    assert_same_run(
        simulate(noisy((0, 364, 0.4), (100, 199, 0.1)), BASELINE, 4),
        simulate(noisy((0, 99, 0.4), (100, 199, 0.1), (200, 364, 0.4)), BASELINE, 4),
    )


def test_noise_begins_and_ends_with_its_interval():
    usual = simulate(SLOW_DRIFT, BASELINE, 4, daily=True)
    late = simulate(noisy((200, 200, 1.0)), BASELINE, 4, daily=True)
    assert np.array_equal(late.identity[:202], usual.identity[:202])
    assert not np.array_equal(late.identity[202], usual.identity[202])


def test_no_uses_per_learn_is_the_published_workload():
    text = 'description = "x"\n[identity]\ndrift_per_day = 0.02\n'
    absent = parse_scenario(text, name="world", where="here")
    zero = parse_scenario(f"{text}[workload]\nuses_per_learn = 0\n", name="world", where="here")
    assert_same_run(simulate(absent, BASELINE, 2), simulate(zero, BASELINE, 2))
    assert_same_run(simulate(absent, BASELINE, 2), simulate(SLOW_DRIFT, BASELINE, 2))


def test_uses_per_learn_change_scores_but_no_draw():
    published, used = simulate(SLOW_DRIFT, BASELINE, 2), simulate(USED, BASELINE, 2)
    assert np.array_equal(published.identity, used.identity)
    assert not np.array_equal(published.snapshots, used.snapshots)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**62),
    arm=st.sampled_from(PUBLISHED_ARMS),
    dimension=st.sampled_from([2, 3, 8, 33]),
    size=st.integers(1, 12),
    learns=st.integers(0, 6),
    queries=st.integers(0, 6),
    drift=st.sampled_from([0.0, 0.02, 1.0]),
)
def test_vitals_of_any_world_stay_in_their_ranges(
    seed, arm, dimension, size, learns, queries, drift
):
    world = changed(
        SLOW_DRIFT,
        horizon_days=30,
        identity={"dimension": dimension, "drift_per_day": drift},
        constitution={"size": size},
        workload={"learns_per_day": learns, "queries_per_day": queries},
    )
    trajectory = simulate(world, ARMS[arm], seed)
    row = dict(zip(SNAPSHOT_FIELDS, trajectory.snapshots[-1], strict=True))
    assert trajectory.n_blocks == size + 30 * learns
    assert -1.0 <= row["quality"] <= 1.0
    assert row["quality_ratio"] <= 1.0 + 1e-12
    shares = ("recent_reach", "ego_moat", "const_align_to_self", "retention")
    assert all(0.0 <= row[share] <= 1.0 + 1e-12 for share in shares)
    assert 0.0 <= row["es_min"] <= row["es_mean"] + 1e-12 <= row["es_max"] + 2e-12
    assert 0 <= row["const_alive"] <= size
    np.testing.assert_allclose(np.linalg.norm(trajectory.identity, axis=1), 1.0, atol=1e-12)
