"""What the scenarios do: against elfmem's own numbers, and against what is known in closed form."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from elfmem_sim import worlds
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.kernel.centroid import Gate, follow
from elfmem_sim.scenario import Regime, load_scenario
from elfmem_sim.simulate import prepare, simulate
from elfmem_sim.worlds import COLUMNS, angles, drift_scores, live_through, measure_worlds

# Reviews by elfmem, every week, which change nothing.
WATCHED = ARMS["review"].model_copy(
    update={
        "review": ARMS["review"].review.model_copy(
            update={"cadence_days": 7, "accept_probability": 0.0}
        )
    }
)
SEEDS = range(6)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return measure_worlds(SEEDS, ["adr-0003/slow_drift", "adr-0003/regime_change"])


def row(table: pd.DataFrame, scenario: str, quantity: str):
    found = table[(table["scenario"] == f"adr-0003/{scenario}") & (table["quantity"] == quantity)]
    (only,) = found.itertuples()
    return only


# Against elfmem.


def used_thrice(name: str):
    scenario = load_scenario(name)
    workload = scenario.workload.model_copy(update={"uses_per_learn": 3})
    return scenario.model_copy(update={"workload": workload})


@pytest.mark.parametrize("seed", [0, 1, 4])
@pytest.mark.parametrize("name", worlds.WORLDS)
def test_drift_scores_are_elfmems_own(name, seed):
    world = live_through(load_scenario(name), seed)
    reviews = simulate(used_thrice(name), WATCHED, seed, explain=True).reviews
    assert len(reviews) == 52
    days = [review.day for review in reviews]
    assert world.evidence_blocks[days].tolist() == [review.evidence_blocks for review in reviews]
    # elfmem keeps embeddings in single precision.
    np.testing.assert_allclose(world.drift[days], [r.drift for r in reviews], rtol=0, atol=2e-7)


def test_a_day_without_enough_history_for_elfmem_has_no_score():
    daily = WATCHED.model_copy(
        update={"review": WATCHED.review.model_copy(update={"cadence_days": 1})}
    )
    scenario = load_scenario("adr-0004/slow_drift").model_copy(update={"horizon_days": 30})
    world = live_through(load_scenario("adr-0003/slow_drift"), 2)
    reviews = simulate(scenario, daily, 2, explain=True).reviews
    assert np.isnan(world.drift[:30]).all(axis=1).tolist() == [
        review.insufficient_history for review in reviews
    ]
    assert any(review.insufficient_history for review in reviews)


@pytest.mark.parametrize("name", ["adr-0003/stable", "adr-0003-self-architect/regime_change"])
def test_an_old_block_that_is_used_again_is_in_the_centroid(name):
    """Where old blocks are used, the newest learned ones are not what elfmem looks at."""
    agent, rules, calendar = prepare(used_thrice(name), ARMS["baseline"], 4)
    centroids, counts = np.empty((365, 8)), np.empty(365, np.int64)
    follow(agent, rules, calendar, Gate(50, 2, 720.0), centroids, counts)
    learned = agent.topic[10 : agent.blocks[0]]
    newest = np.array([learned[5 * day - 45 : 5 * day + 5].mean(axis=0) for day in range(9, 365)])
    differs = ~np.isclose(centroids[9:], newest).all(axis=1)
    assert differs.any() == (name != "adr-0003/stable")


# Drift scores and angles.


def test_drift_score_runs_from_zero_to_one():
    axes = np.eye(3)
    centroids = np.array([[2.0, 0.0, 0.0], [0.0, 0.5, 0.0], [-3.0, 0.0, 0.0]])
    assert drift_scores(axes[:1], centroids)[:, 0].tolist() == [0.0, 0.5, 1.0]


def test_drift_score_of_no_direction_is_a_half():
    assert drift_scores(np.eye(2), np.zeros((1, 2))).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("degrees", [1e-9, 0.5, 60.0, 90.0, 179.9, 180.0])
def test_angle_is_the_angle(degrees):
    turned = np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])
    assert angles(np.array([1.0, 0.0]), turned) == pytest.approx(degrees, rel=1e-6)


# The self's path.


def test_the_path_does_not_depend_on_how_often_blocks_are_used():
    scenario = load_scenario("adr-0003/regime_change")
    published = simulate(scenario, ARMS["baseline"], 3)
    assert np.array_equal(live_through(scenario, 3).identity, published.identity)


def test_a_turn_by_sixty_degrees_is_found_to_be_one(monkeypatch):
    real = load_scenario("adr-0003/regime_change")
    turn = real.identity.model_copy(update={"regimes": (Regime(day=120, angle_degrees=60.0),)})
    turned = real.model_copy(update={"identity": turn})
    monkeypatch.setattr(worlds, "load_scenario", lambda _: turned)
    found = measure_worlds([0, 1, 2], ["turned"]).set_index("quantity").loc["angle_day_120"]
    assert (found["mean"], found["sd"]) == pytest.approx((60.0, 0.0), abs=1e-9)


def test_the_path_of_a_year_is_that_of_the_drift(table):
    # A step of sigma in each of the other seven directions is an angle of sigma times chi(7); over
    # six years of days its mean is known to 0.6 %.
    year = 365 * math.degrees(0.02 * scipy_stats.chi(7).mean())
    assert row(table, "slow_drift", "path").mean == pytest.approx(year, rel=0.02)


def test_an_ordinary_day_is_the_last_one_without_a_jump():
    scenario = load_scenario("adr-0003/regime_change").model_copy(update={"horizon_days": 121})
    world = live_through(scenario, 0)
    before, jump = world.identity[119:121], world.identity[120:122]
    found = dict(worlds._quantities_of(scenario, 0.35, world))
    assert found["angle_day_120"] == angles(*jump)
    assert found["angle_ordinary_day"] == angles(*before)


def test_a_scenario_without_a_jump_has_no_angle_of_one(table):
    quantities = table.loc[table["scenario"] == "adr-0003/slow_drift", "quantity"]
    assert not quantities.str.startswith("angle_day").any()


# The table.


def test_columns_are_the_stated_ones(table):
    assert tuple(table.columns) == COLUMNS


def test_every_quantity_occurs_once_per_scenario(table):
    assert not table.duplicated(["scenario", "quantity"]).any()


def test_block_scores_are_pooled_but_their_interval_is_over_seeds(table):
    scores = [live_through(load_scenario("adr-0003/slow_drift"), s).drift[-1] for s in SEEDS]
    found = row(table, "slow_drift", "drift_block_end")
    by_seed = np.mean(scores, axis=1)
    half = scipy_stats.t.ppf(0.975, 5) * by_seed.std(ddof=1) / math.sqrt(6)
    assert found.n == 6
    assert found.sd == pytest.approx(np.std(scores, ddof=1))
    assert (found.q05, found.q95) == pytest.approx(tuple(np.quantile(scores, [0.05, 0.95])))
    assert (found.low, found.high) == pytest.approx((by_seed.mean() - half, by_seed.mean() + half))


@pytest.mark.parametrize(("who", "over_blocks"), [("any", np.max), ("mean", np.mean)])
def test_shares_and_first_days_count_the_seeds_above_the_shipped_threshold(table, who, over_blocks):
    first_days = []
    for seed in SEEDS:
        drift = live_through(load_scenario("adr-0003/regime_change"), seed).drift
        above = [day for day in range(365) if over_blocks(drift[day]) > 0.35]
        first_days += above[:1]
    share = row(table, "regime_change", f"share_{who}_above")
    exact = scipy_stats.binomtest(len(first_days), 6).proportion_ci(method="exact")
    assert (share.mean, share.n) == pytest.approx((100 * len(first_days) / 6, 6))
    assert (share.low, share.high) == pytest.approx((100 * exact.low, 100 * exact.high))
    when = row(table, "regime_change", f"first_day_{who}_above")
    assert (when.mean, when.n) == (pytest.approx(np.mean(first_days)), len(first_days))


def test_peaks_are_never_below_ends(table):
    wide = table.pivot_table(index="scenario", columns="quantity", values="mean")
    for name in ("block", "mean", "most"):
        assert (wide[f"drift_{name}_peak"] >= wide[f"drift_{name}_end"]).all()


def test_result_does_not_depend_on_the_workers(monkeypatch):
    monkeypatch.setattr(worlds, "_SEEDS_PER_TASK", 2)
    names = ["adr-0003/stable"]
    pd.testing.assert_frame_equal(
        measure_worlds(range(5), names, workers=1), measure_worlds(range(5), names, workers=2)
    )


# What cannot be measured.


def test_a_world_without_a_constitution_is_refused():
    with pytest.raises(UserError) as refused:
        measure_worlds([0], ["adr-0001/baseline"])
    assert refused.value.value == "adr-0001/baseline"


def test_no_seeds_are_refused():
    with pytest.raises(ValueError, match="no seeds"):
        measure_worlds([])
