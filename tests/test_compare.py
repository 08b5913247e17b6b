"""Tests of `elfmem_sim.compare`: from replicates to paired estimates."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from elfmem_sim.compare import (
    SHARES,
    against_control,
    differences,
    replay_table,
    summarise,
    values_of,
)
from elfmem_sim.stats import two_seed_percentile

QUALITY = {
    ("drift", "baseline"): [0.50, 0.60, 0.70, 0.40],
    ("drift", "review"): [0.55, 0.62, 0.90, 0.40],
    ("calm", "baseline"): [0.80, 0.81, 0.82, 0.83],
    ("calm", "review"): [0.80, 0.85, 0.80, 0.83],
}
# In percentage points, seed by seed.
DRIFT_GAIN = [5.0, 2.0, 20.0, 0.0]
CALM_GAIN = [0.0, 4.0, -2.0, 0.0]


def table(quality=None, variant=""):
    """A tidy table; the count `accepted` is ten times the seed, plus one for the review."""
    parts = []
    for (scenario, arm), values in (quality or QUALITY).items():
        seeds = list(range(len(values)))
        parts.append(
            pd.DataFrame(
                {
                    "scenario": scenario,
                    "arm": arm,
                    "variant": variant,
                    "seed": seeds,
                    "quality_ratio": values,
                    "accepted": [10 * seed + (arm == "review") for seed in seeds],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def gain(frame, scenarios=("drift",), estimand="quality_ratio", **more):
    return differences(frame, scenarios, "review", "baseline", estimand, **more)


# --- values_of ---


def test_values_are_indexed_by_seed_in_order():
    shuffled = table().iloc[::-1]
    assert list(values_of(shuffled, "drift", "review", "quality_ratio").index) == [0, 1, 2, 3]


def test_a_share_is_given_in_percent():
    values = values_of(table(), "drift", "baseline", "quality_ratio")
    assert values.tolist() == pytest.approx([50.0, 60.0, 70.0, 40.0])


def test_a_count_is_given_as_it_is():
    assert values_of(table(), "drift", "review", "accepted").tolist() == [1.0, 11.0, 21.0, 31.0]


@pytest.mark.parametrize("estimand", sorted(SHARES))
def test_every_share_is_scaled(estimand):
    frame = table().rename(columns={"quality_ratio": estimand})
    assert values_of(frame, "drift", "baseline", estimand)[0] == pytest.approx(50.0)


@pytest.mark.parametrize(
    "estimand", ["es_concentration", "amendments_per_year", "proposer_calls_per_year", "n_blocks"]
)
def test_what_is_no_share_is_not_scaled(estimand):
    frame = table().rename(columns={"quality_ratio": estimand})
    assert values_of(frame, "drift", "baseline", estimand)[0] == 0.5


def test_variants_are_kept_apart():
    other = table({("drift", "review"): [0.1, 0.2]}, variant="half")
    frame = pd.concat([table(), other])
    values = values_of(frame, "drift", "review", "quality_ratio", "half")
    assert values.tolist() == pytest.approx([10.0, 20.0])


@pytest.mark.parametrize(
    ("scenario", "arm", "variant"),
    [("storm", "review", ""), ("drift", "model_c", ""), ("drift", "review", "half")],
)
def test_a_cell_that_was_not_run_is_refused(scenario, arm, variant):
    with pytest.raises(KeyError, match=scenario):
        values_of(table(), scenario, arm, "quality_ratio", variant)


def test_a_seed_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        values_of(pd.concat([table(), table()]), "drift", "review", "quality_ratio")


# --- differences ---


def test_differences_are_treatment_minus_control_in_percentage_points():
    assert gain(table()).tolist() == pytest.approx(DRIFT_GAIN)


def test_differences_of_a_count_are_counts():
    assert gain(table(), estimand="accepted").tolist() == [1.0, 1.0, 1.0, 1.0]


def test_scenarios_have_equal_weight():
    expected = [(a + b) / 2 for a, b in zip(DRIFT_GAIN, CALM_GAIN, strict=True)]
    assert gain(table(), ("drift", "calm")).tolist() == pytest.approx(expected)


@settings(max_examples=60)
@given(order=st.permutations(range(16)))
def test_pairing_is_by_seed_whatever_the_order_of_the_rows(order):
    frame = table()
    straight = gain(frame, ("drift", "calm"))
    assert gain(frame.iloc[order], ("drift", "calm")).tolist() == straight.tolist()


def test_treatment_and_control_may_be_of_different_variants():
    control = table({("drift", "baseline"): [0.1, 0.1, 0.1, 0.1]}, variant="other")
    frame = pd.concat([table(), control])
    expected = [45.0, 52.0, 80.0, 30.0]
    assert gain(frame, variants=("", "other")).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("shift", [1, 100], ids=["overlapping", "disjoint"])
def test_arms_at_different_seeds_are_refused(shift):
    frame = table()
    frame.loc[frame["arm"] == "review", "seed"] += shift
    with pytest.raises(ValueError, match="different seeds"):
        gain(frame)


def test_an_arm_that_lacks_a_seed_is_refused():
    frame = table()
    lacking = frame[~((frame["arm"] == "review") & (frame["seed"] == 2))]
    with pytest.raises(ValueError, match="different seeds"):
        gain(lacking)


def test_scenarios_at_different_seeds_are_refused():
    frame = table()
    frame.loc[frame["scenario"] == "calm", "seed"] += 1
    with pytest.raises(ValueError, match="calm and drift have different seeds"):
        gain(frame, ("drift", "calm"))


def test_differences_over_no_scenario_are_refused():
    with pytest.raises(ValueError, match="no scenario"):
        gain(table(), ())


# --- summarise ---


def only(frame, **where):
    for column, value in where.items():
        frame = frame[frame[column] == value]
    (row,) = frame.itertuples(index=False)
    return row


def test_summary_has_one_row_per_cell_and_estimand():
    summary = summarise(table(), ["quality_ratio", "accepted"])
    keys = list(summary[["scenario", "arm", "estimand"]].itertuples(index=False, name=None))
    assert keys == [(*cell, e) for cell in QUALITY for e in ("quality_ratio", "accepted")]


def test_summary_is_the_t_interval_in_percent():
    row = only(summarise(table(), ["quality_ratio"]), scenario="drift", arm="review")
    values = 100 * np.array(QUALITY["drift", "review"])
    error = scipy_stats.sem(values)
    low, high = scipy_stats.t.interval(0.95, len(values) - 1, values.mean(), error)
    expected = (values.mean(), error, low, high, 4)
    assert (row.mean, row.mcse, row.low, row.high, row.n) == pytest.approx(expected)


def test_summary_leaves_counts_as_they_are():
    row = only(summarise(table(), ["accepted"]), scenario="drift", arm="baseline")
    assert row.mean == 15.0


def test_summary_keeps_variants_apart():
    frame = pd.concat([table(), table(variant="half")])
    assert summarise(frame, ["quality_ratio"])["n"].tolist() == [4] * 8


def test_the_interval_of_one_seed_is_infinite():
    row = only(summarise(table({("drift", "review"): [0.5]}), ["quality_ratio"]))
    assert (row.low, row.high) == (-math.inf, math.inf)


def test_one_seed_has_no_monte_carlo_error():
    row = only(summarise(table({("drift", "review"): [0.5]}), ["quality_ratio"]))
    assert math.isnan(row.mcse)


# --- against_control ---


def test_every_other_arm_is_compared_in_every_scenario():
    third = table({("drift", "model_c"): [0.1, 0.2, 0.3, 0.4]})
    result = against_control(pd.concat([table(), third]), "baseline", ["quality_ratio"])
    assert list(result[["scenario", "arm"]].itertuples(index=False, name=None)) == [
        ("drift", "review"),
        ("drift", "model_c"),
        ("calm", "review"),
    ]


def test_comparison_with_the_control_is_the_paired_t_interval():
    row = only(against_control(table(), "baseline", ["quality_ratio"]), scenario="drift")
    a, b = (100 * np.array(QUALITY["drift", arm]) for arm in ("review", "baseline"))
    interval = scipy_stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (row.low, row.high) == pytest.approx((interval.low, interval.high))


def test_comparison_with_the_control_is_paired_by_seed_not_by_row():
    frame = table()
    review = frame["arm"] == "review"
    mixed = pd.concat([frame[~review], frame[review].iloc[::-1]])
    straight = against_control(frame, "baseline", ["quality_ratio"])
    pd.testing.assert_frame_equal(against_control(mixed, "baseline", ["quality_ratio"]), straight)


def test_comparison_with_a_control_at_other_seeds_is_refused():
    frame = table()
    frame.loc[frame["arm"] == "review", "seed"] += 1
    with pytest.raises(ValueError, match="different seeds"):
        against_control(frame, "baseline", ["quality_ratio"])


@pytest.mark.parametrize("shorter", ["baseline", "review"])
def test_arms_are_compared_at_the_seeds_up_to_which_both_were_run(shorter):
    frame = table()
    cut = frame[(frame["arm"] != shorter) | (frame["seed"] < 3)]
    row = only(against_control(cut, "baseline", ["quality_ratio"]), scenario="drift")
    assert (row.mean, row.n) == (pytest.approx(np.mean(DRIFT_GAIN[:3])), 3)


def test_an_arm_run_at_fewer_seeds_does_not_cut_the_others_short():
    third = table({("drift", "model_c"): [0.1, 0.2]})
    frame = pd.concat([table(), third])
    result = against_control(frame, "baseline", ["quality_ratio"])
    found = dict(zip(result["arm"] + " " + result["scenario"], result["n"], strict=True))
    assert found == {"review drift": 4, "model_c drift": 2, "review calm": 4}


def test_a_seed_left_out_on_the_way_is_refused():
    frame = table()
    lacking = frame[~((frame["arm"] == "review") & (frame["seed"] == 2))]
    with pytest.raises(ValueError, match="different seeds"):
        against_control(lacking, "baseline", ["quality_ratio"])


def test_a_scenario_without_the_control_has_no_rows():
    storm = table({("storm", "review"): [0.5, 0.6], ("storm", "model_c"): [0.1, 0.2]})
    result = against_control(pd.concat([storm, table()]), "baseline", ["quality_ratio"])
    assert result["scenario"].tolist() == ["drift", "calm"]


def test_arms_are_compared_within_a_variant():
    half = {key: [value / 2 for value in values] for key, values in QUALITY.items()}
    frame = pd.concat([table(), table(half, variant="half")])
    result = against_control(frame, "baseline", ["quality_ratio"])
    keys = ["scenario", "arm", "control", "variant"]
    assert list(result[keys].itertuples(index=False, name=None)) == [
        ("drift", "review", "baseline", ""),
        ("calm", "review", "baseline", ""),
        ("drift", "review", "baseline", "half"),
        ("calm", "review", "baseline", "half"),
    ]
    plain = [np.mean(DRIFT_GAIN), np.mean(CALM_GAIN)]
    assert result["mean"].tolist() == pytest.approx([*plain, plain[0] / 2, plain[1] / 2])


def test_a_variant_without_the_control_has_no_rows():
    other = table({("drift", "review"): [0.1, 0.2]}, variant="half")
    result = against_control(pd.concat([table(), other]), "baseline", ["quality_ratio"])
    assert set(result["variant"]) == {""}


def test_comparison_of_one_seed_has_an_infinite_interval():
    one = {key: values[:1] for key, values in QUALITY.items()}
    row = only(against_control(table(one), "baseline", ["quality_ratio"]), scenario="drift")
    assert (row.mean, row.low, row.high, row.n) == pytest.approx((5.0, -math.inf, math.inf, 1))


def test_a_control_alone_has_nothing_to_be_compared_with():
    alone = table({("drift", "baseline"): [0.5, 0.6]})
    result = against_control(alone, "baseline", ["quality_ratio"])
    assert (len(result), "low" in result) == (0, True)


# --- replay_table ---


@pytest.fixture
def replayed():
    published = pd.DataFrame(
        [("drift", "baseline", "quality_ratio", 54.9, 1)],
        columns=["scenario", "arm", "estimand", "value", "digits"],
    )
    (row,) = replay_table(table(), published).itertuples(index=False)
    return row


def test_replay_is_the_mean_of_seeds_0_and_1(replayed):
    assert replayed.replayed == pytest.approx(55.0)


def test_replay_keeps_the_published_figure_and_its_digits(replayed):
    assert (replayed.published, replayed.digits) == (54.9, 1)


def test_population_is_estimated_from_all_seeds(replayed):
    assert (replayed.mean, replayed.n) == (pytest.approx(55.0), 4)


def test_population_has_its_t_interval(replayed):
    half = scipy_stats.t.ppf(0.975, 3) * np.std([50, 60, 70, 40], ddof=1) / 2
    assert (replayed.low, replayed.high) == pytest.approx((55.0 - half, 55.0 + half))


def test_spread_is_between_single_seeds(replayed):
    assert replayed.sd == pytest.approx(np.std([50, 60, 70, 40], ddof=1))


def test_percentile_is_that_of_the_replayed_pair_among_all_pairs(replayed):
    # Pair means 45, 50, 55, 55, 60, 65: two below and two equal, so (2 + 4) / 2 of 6.
    assert replayed.percentile == pytest.approx(50.0)


def test_percentile_is_not_that_of_the_published_figure(replayed):
    published = two_seed_percentile([50.0, 60.0, 70.0, 40.0], 54.9)
    assert published == pytest.approx(100 / 3)
    assert replayed.percentile != pytest.approx(published)


def test_replay_without_the_published_seeds_is_refused():
    frame = table()
    frame["seed"] += 1
    published = pd.DataFrame(
        [("drift", "baseline", "quality_ratio", 54.9, 1)],
        columns=["scenario", "arm", "estimand", "value", "digits"],
    )
    with pytest.raises(KeyError):
        replay_table(frame, published)
