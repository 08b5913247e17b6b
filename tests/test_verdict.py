"""Tests of `elfmem_sim.verdict`: every rule on tables whose right verdict is known.

The constructed gains alternate between `mean - 1` and `mean + 1` over 50 seeds, so their standard
error is exactly 1/7 and the 95 % interval is `mean` +- 0.287.
"""

import itertools
import json
import math
import typing

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from elfmem_sim import verdict as module
from elfmem_sim.claims import Claim, ClaimFile, Protocol, Sensitivity, Variant
from elfmem_sim.stats import mean_interval, two_seed_probability
from elfmem_sim.verdict import (
    CONTRADICTING,
    WORDS,
    Effect,
    Word,
    _Case,
    effect_of,
    judge,
    judge_sensitivity,
)

N = 50
ERROR = 1 / 7
HALF = scipy_stats.t.ppf(0.975, N - 1) * ERROR


KEYS = ["scenario", "arm", "variant"]


def spread(mean, around=1.0, n=N):
    return mean + around * np.where(np.arange(n) % 2, 1.0, -1.0)


def record(*claims):
    return ClaimFile(
        format=1,
        adr="0000",
        title="Constructed",
        statement="It gains.",
        protocol=Protocol(seeds=2, assumption="assumed", treatment="review", control="baseline"),
        claim=claims,
    )


def table(gains, estimand="quality_ratio", variant="", control_variant=""):
    """Replicates in which the review's gain over the baseline, in pp, is as given by scenario."""
    parts = []
    for scenario, gain in gains.items():
        base = 0.5 + 0.1 * np.sin(np.arange(len(gain)))
        for arm, label, values in (
            ("baseline", control_variant, base),
            ("review", variant, base + np.asarray(gain) / 100),
        ):
            parts.append(
                pd.DataFrame(
                    {
                        "scenario": scenario,
                        "arm": arm,
                        "variant": label,
                        "seed": np.arange(len(gain)),
                        estimand: values,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def claim(rule, id="c", **more):
    return Claim(id=id, statement="It is so.", rule=rule, **{"scenarios": ("s",), **more})


def in_range(id="c", **more):
    return claim("range", id, low=9.0, high=14.0, **more)


def only(*args):
    (verdict,) = judge(*args)
    return verdict


# --- paired ---


def test_paired_differences_are_of_the_claims_own_estimand():
    frame = table({"s": [1.0, 2.0]}).assign(retention=0.0)
    own = claim("range", estimand="retention")
    assert _Case(record(), own, frame, None).differences().tolist() == [0.0, 0.0]


def test_paired_differences_are_of_the_protocols_estimand_by_default():
    frame = table({"s": [1.0, 2.0]}).assign(retention=0.0)
    case = _Case(record(), claim("range"), frame, None)
    assert case.differences().tolist() == pytest.approx([1.0, 2.0])


def test_a_claim_may_name_its_own_arms():
    frame = table({"s": [1.0, 2.0]})
    own = claim("range", treatment="baseline", control="review")
    case = _Case(record(), own, frame, None)
    assert case.differences().tolist() == pytest.approx([-1.0, -2.0])


# --- published effects ---


def test_the_published_seeds_are_shown_beside_the_population():
    frame = table({"s": [2.0, 4.0, 10.0, 12.0]})
    verdict = only(record(in_range(published=10.9)), frame, None)
    assert (verdict.published, verdict.replayed) == (10.9, pytest.approx(3.0))
    # Of the six pairs of seeds, only 10 and 12 reach a mean of 11.
    assert verdict.two_seed_probability == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("published", "digits", "share"),
    [(3.04, 1, 1.0), (3.06, 1, 0.0), (3.06, 0, 1.0), (-2.96, 1, 0.0)],
)
def test_what_rounds_to_the_published_figure_counts_as_it(published, digits, share):
    # Both seeds show 3.0: one figure, as it would be printed.
    frame = table({"s": [3.0, 3.0]})
    verdict = only(record(in_range(published=published, digits=digits)), frame, None)
    assert verdict.two_seed_probability == share


def test_a_claim_without_a_single_figure_has_no_replay():
    verdict = only(record(in_range()), table({"s": spread(11.0)}), None)
    assert (verdict.published, verdict.replayed, verdict.two_seed_probability) == (None,) * 3


# --- cost ---


@pytest.mark.parametrize(
    ("gain", "word"), [(-1.0, "REPRODUCED"), (1.0, "CONTRADICTED"), (0.0, "INCONCLUSIVE")]
)
def test_a_cost_is_shown_by_a_loss(gain, word):
    verdict = only(record(claim("cost")), table({"s": spread(gain)}), None)
    assert verdict.verdict == word
    assert verdict.estimate == pytest.approx(-gain)


# --- ratio ---


def ratio(treatment, low=18.0, high=22.0):
    frame = pd.DataFrame(
        {
            "scenario": "s",
            "arm": np.repeat(["baseline", "review"], N),
            "variant": "",
            "seed": np.tile(np.arange(N), 2),
            "rescore_damage": np.concatenate((spread(20.0), np.full(N, treatment))),
        }
    )
    own = claim("ratio", estimand="rescore_damage", low=low, high=high, published=20.0)
    return only(record(own), frame, None)


@pytest.mark.parametrize(
    ("treatment", "word"), [(1.0, "REPRODUCED"), (0.5, "ABOVE"), (2.0, "BELOW")]
)
def test_a_ratio_is_the_controls_mean_over_the_treatments(treatment, word):
    verdict = ratio(treatment)
    assert verdict.verdict == word
    assert verdict.estimate == pytest.approx(20.0 / treatment)
    assert verdict.low < verdict.estimate < verdict.high
    assert verdict.unit == "fold"


def test_a_ratios_interval_is_that_of_the_mean():
    verdict = ratio(1.0)
    assert verdict.high - verdict.low == pytest.approx(2 * 1.96 * ERROR, rel=0.15)


def test_a_ratio_shows_the_published_seeds_and_how_often_two_seeds_show_as_much():
    verdict = ratio(1.0)
    assert (verdict.published, verdict.replayed) == (20.0, pytest.approx(20.0))
    # The controls are 19 and 21 in turn: two seeds reach 20 unless both are 19.
    assert verdict.two_seed_probability == pytest.approx(1 - 24 / 98, abs=0.007)


# --- level and spread ---


def levels(estimand="quality_ratio", **scenarios):
    """Replicates of the review alone, by scenario."""
    return pd.concat(
        [
            pd.DataFrame({"scenario": name, "arm": "review", "variant": "",
                          "seed": np.arange(len(values)), estimand: values})
            for name, values in scenarios.items()
        ],
        ignore_index=True,
    )  # fmt: skip


LEVEL_CASES = {
    "REPRODUCED": (9.5, 0.5),
    "CONSISTENT": (9.05, 0.5),
    "ABOVE": (12.0, 0.5),
    "BELOW": (4.0, 0.5),
    "INCONCLUSIVE": (9.5, 5.0),
}


@pytest.mark.parametrize(("word", "values"), LEVEL_CASES.items(), ids=LEVEL_CASES)
def test_a_level_is_judged_on_its_range(word, values):
    own = claim("level", estimand="es_concentration", low=9.0, high=10.0)
    frame = levels("es_concentration", s=spread(*values))
    assert only(record(own), frame, None).verdict == word


def test_a_level_is_the_mean_of_the_treatment_over_seeds_and_scenarios():
    own = claim("level", scenarios=("s", "t"), estimand="es_concentration", low=9.0, high=10.0)
    frame = levels("es_concentration", s=spread(9.0), t=spread(10.0))
    v = only(record(own), frame, None)
    assert (v.estimate, v.low, v.high, v.n) == pytest.approx((9.5, 9.5 - HALF, 9.5 + HALF, N))
    assert v.detail == "claimed +9 to +10 fold; mean of the treatment in es_concentration"


@pytest.mark.parametrize(
    ("estimand", "unit", "scale"),
    [("es_concentration", "fold", 1.0), ("quality_ratio", "%", 100.0), ("ego_alpha", "", 1.0)],
)
def test_a_level_is_in_the_estimands_own_unit(estimand, unit, scale):
    own = claim("level", estimand=estimand, low=0.0, high=1000.0)
    v = only(record(own), levels(estimand, s=[4.0, 6.0]), None)
    assert (v.unit, v.estimate) == (unit, pytest.approx(5.0 * scale))


def test_a_level_is_tested_as_a_mean_is():
    own = claim("level", estimand="es_concentration", low=9.0, high=10.0)
    v = only(record(own), levels("es_concentration", s=spread(8.8)), None)
    assert v.p == pytest.approx(scipy_stats.t.sf(0.2 / ERROR, N - 1), rel=1e-6)
    assert v.bootstrap == pytest.approx((v.low, v.high), abs=0.05)


SPREAD_CASES = {
    "REPRODUCED": (0.8, 0.73, 0.76),
    "ABOVE": (0.9, 0.73, 0.76),
    "BELOW": (0.8, 0.79, 0.795),
}


@pytest.mark.parametrize(("word", "means"), SPREAD_CASES.items(), ids=SPREAD_CASES)
def test_a_spread_is_largest_minus_smallest_scenario_mean(word, means):
    own = claim("spread", scenarios=("s", "t", "u"), low=6.0, high=8.0, published=7.0)
    values = dict(zip("stu", (spread(mean, 0.01) for mean in means), strict=True))
    v = only(record(own), levels(**values), None)
    assert v.verdict == word
    assert v.estimate == pytest.approx(100 * (max(means) - min(means)))
    assert (v.n, v.unit, v.p, v.bootstrap) == (N, "pp", None, None)


def test_a_spread_shows_what_the_published_seeds_and_any_two_show():
    own = claim("spread", scenarios=("s", "t"), low=6.0, high=8.0, published=30.0)
    v = only(record(own), levels(s=[0.5, 0.7, 0.9], t=[0.5, 0.5, 0.5]), None)
    # Pairs (0, 1), (0, 2) and (1, 2) show 10, 20 and 30 points.
    assert v.replayed == pytest.approx(10.0)
    assert v.two_seed_probability == pytest.approx(1 / 3, abs=0.007)


# --- units of differences ---


@pytest.mark.parametrize(
    ("rule", "estimand", "unit"),
    [
        ("range", "quality_ratio", "pp"),
        ("improvement", "const_align_to_self", "pp"),
        ("cost", "es_concentration", "fold"),
        ("improvement", "distribute_n", ""),
        ("equivalence", "distribute_n", ""),
    ],
)
def test_a_difference_is_in_the_estimands_own_unit(rule, estimand, unit):
    own = claim(rule, estimand=estimand, low=-1.0, high=1.0)
    assert only(record(own), table({"s": spread(0.1)}, estimand), None).unit == unit


# --- cells of different n ---


def grown(n, other, **scenarios):
    """The frame of the gains given, the baseline at ``other`` seeds."""
    frame = table({name: values[:n] for name, values in scenarios.items()})
    return frame[(frame["arm"] != "baseline") | (frame["seed"] < other)]


def test_a_claim_is_judged_at_the_seeds_that_its_cells_have_in_common():
    gains = spread(11.5)
    v = only(record(in_range()), grown(40, 30, s=gains), None)
    expected = only(record(in_range()), table({"s": gains[:30]}), None)
    assert v == expected
    assert v.n == 30


def test_scenarios_of_different_n_are_averaged_at_the_common_seeds():
    own = in_range(scenarios=("s", "t"))
    frame = pd.concat([table({"s": spread(3.0, n=50)}), table({"t": spread(20.0, n=20)})])
    assert only(record(own), frame, None) == only(record(own), frame[frame["seed"] < 20], None)


def test_a_claim_is_not_cut_short_by_cells_it_is_not_about():
    frame = pd.concat([table({"s": spread(11.5)}), table({"t": [1.0, 2.0]})])
    assert only(record(in_range()), frame, None).n == N


# --- effects ---


def mean_of(means):
    return means[..., 0]


def ratio_of(means):
    return means[..., 0] / means[..., 1]


def range_of(means):
    return np.ptp(means, axis=-1)


def effect(of, *columns):
    return Effect(np.column_stack([np.asarray(c, float) for c in columns]), of, "pp")


def rng(seed=0):
    return np.random.default_rng(seed)


SOME = rng(1).normal(5.0, 2.0, (12, 3))
EFFECTS = {
    "mean": effect(mean_of, SOME[:, 0]),
    "ratio": effect(ratio_of, *SOME[:, :2].T),
    "spread": effect(range_of, *SOME.T),
}
BY_KIND = pytest.mark.parametrize("own", EFFECTS.values(), ids=EFFECTS)


def pairs_of(own):
    """The effect that each pair of distinct seeds shows, by enumeration."""
    n = len(own.values)
    return np.array(
        [own.of(own.values[[i, j]].mean(axis=0)) for i, j in itertools.combinations(range(n), 2)]
    )


def test_an_effect_is_a_mean_if_there_is_one_number_per_seed():
    assert [own.is_mean for own in EFFECTS.values()] == [True, False, False]


def test_a_mean_has_students_interval():
    assert EFFECTS["mean"].estimate(rng()) == mean_interval(SOME[:, 0])


@BY_KIND
def test_an_effect_is_estimated_from_the_means_of_all_seeds(own):
    e = own.estimate(rng())
    assert (e.mean, e.n) == (pytest.approx(own.of(own.values.mean(axis=0))), 12)
    assert e.low < e.mean < e.high


@BY_KIND
def test_an_effects_interval_repeats_with_the_generator(own):
    assert own.estimate(rng(7)) == own.estimate(rng(7))


@BY_KIND
def test_an_effect_is_replayed_from_seeds_0_and_1(own):
    assert own.replayed() == pytest.approx(pairs_of(own)[0])


@BY_KIND
def test_two_seeds_show_what_some_pair_of_distinct_seeds_shows(own):
    drawn = own.two_seeds(rng(), 500)
    assert drawn.shape == (500,)
    gaps = np.abs(drawn[:, None] - pairs_of(own)[None, :]).min(axis=1)
    assert gaps.max() < 1e-12


@BY_KIND
def test_every_pair_of_seeds_is_as_likely_to_be_shown(own):
    drawn = own.two_seeds(rng(2), 30_000)
    nearest = np.abs(drawn[:, None] - pairs_of(own)[None, :]).argmin(axis=1)
    counts = np.bincount(nearest, minlength=66)
    assert scipy_stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("published", [5.5, 3.0, -1.0])
def test_the_two_seed_probability_of_a_mean_is_exact(published):
    found = EFFECTS["mean"].two_seed_probability(published, rng())
    assert found == two_seed_probability(SOME[:, 0], published)


@pytest.mark.parametrize("kind", ["ratio", "spread"])
def test_the_two_seed_probability_of_another_effect_is_sampled(kind):
    own = EFFECTS[kind]
    shown = pairs_of(own)
    published = float(np.quantile(shown, 0.7))
    exact = np.mean(shown >= published)
    error = math.sqrt(exact * (1 - exact) / 100_000)
    assert own.two_seed_probability(published, rng(3)) == pytest.approx(exact, abs=4 * error)


def test_the_two_seed_probability_is_in_the_direction_of_the_published_effect():
    negative = Effect(EFFECTS["ratio"].values * [-1.0, 1.0], ratio_of, "fold")
    shown = pairs_of(negative)
    published = float(np.quantile(shown, 0.2))
    exact = np.mean(shown <= published)
    error = math.sqrt(exact * (1 - exact) / 100_000)
    found = negative.two_seed_probability(published, rng(4))
    assert found == pytest.approx(exact, abs=4 * error)


def test_a_bootstrap_keeps_the_columns_of_a_seed_together():
    # Seeds differ widely, and always by as much in both columns.
    shift = rng(5).normal(0.0, 50.0, 40)
    e = effect(range_of, shift, shift + 7.0).estimate(rng())
    assert (e.mean, e.low, e.high) == pytest.approx((7.0, 7.0, 7.0))


@pytest.mark.parametrize(
    ("of", "centres", "truth"),
    [(range_of, (0.0, 2.0, 5.0), 5.0), (ratio_of, (20.0, 10.0), 2.0)],
    ids=["spread", "ratio"],
)
def test_a_bootstrap_interval_covers_the_truth_as_often_as_it_says(monkeypatch, of, centres, truth):
    """300 studies of 100 seeds, normal and correlated within a seed."""
    monkeypatch.setattr(module, "_RESAMPLES", 400)
    draws, covered = rng(300), 0
    for _ in range(300):
        values = np.array(centres) + draws.normal(0.0, 1.0, (100, len(centres)))
        values += draws.normal(0.0, 1.0, (100, 1))
        e = Effect(values, of, "pp").estimate(draws)
        covered += e.low <= truth <= e.high
    assert scipy_stats.binomtest(covered, 300, 0.95).pvalue > 1e-4


def test_the_effect_of_a_cost_is_what_is_lost():
    frame = table({"s": [1.0, 2.0, 4.0]})
    found = effect_of(record(), claim("cost"), frame)
    assert found.values[:, 0].tolist() == pytest.approx([-1.0, -2.0, -4.0])


def test_the_effect_of_a_claim_is_what_its_verdict_estimates():
    frame = table({"s": spread(11.5), "t": spread(3.0)})
    own = in_range(scenarios=("s", "t"))
    found = effect_of(record(), own, frame)
    assert found.estimate(rng()).mean == only(record(own), frame, None).estimate
    assert (found.is_mean, found.unit) == (True, "pp")


# --- range ---

RANGE_CASES = {
    "REPRODUCED": spread(11.5),
    "CONSISTENT": spread(9.1),
    "ABOVE": spread(20.0),
    "BELOW": spread(4.0),
    "INCONCLUSIVE": spread(11.5, around=10.0),
}


@pytest.mark.parametrize(("word", "gains"), RANGE_CASES.items(), ids=RANGE_CASES)
def test_range(word, gains):
    assert only(record(in_range()), table({"s": gains}), None).verdict == word


def test_range_gives_effect_and_interval():
    v = only(record(in_range()), table({"s": spread(11.5)}), None)
    assert (v.estimate, v.low, v.high, v.n) == pytest.approx((11.5, 11.5 - HALF, 11.5 + HALF, N))


def test_range_is_judged_on_the_equal_weight_mean_over_its_scenarios():
    frame = table({"s": spread(3.0), "t": spread(20.0)})
    v = only(record(in_range(scenarios=("s", "t"))), frame, None)
    assert (v.estimate, v.verdict) == (pytest.approx(11.5), "REPRODUCED")


@pytest.mark.parametrize(
    ("mean", "p"),
    [
        (8.8, scipy_stats.t.sf(0.2 / ERROR, N - 1)),
        (14.2, scipy_stats.t.sf(0.2 / ERROR, N - 1)),
        (11.5, 1.0),
    ],
    ids=["below", "above", "inside"],
)
def test_range_p_is_against_the_nearer_end(mean, p):
    v = only(record(in_range()), table({"s": spread(mean)}), None)
    assert v.p == pytest.approx(p, rel=1e-6)


def test_range_says_in_how_many_seeds_nothing_changed():
    v = only(record(in_range()), table({"s": [0.0, 0.0, 0.0, 40.0]}), None)
    assert "in 75 % of the seeds nothing changed" in v.detail


def test_range_of_one_seed_is_inconclusive():
    assert only(record(in_range()), table({"s": [11.5]}), None).verdict == "INCONCLUSIVE"


# --- the bootstrap beside it ---


def test_bootstrap_agrees_with_the_t_interval():
    v = only(record(in_range()), table({"s": spread(11.5)}), None)
    assert v.bootstrap == pytest.approx((v.low, v.high), abs=0.05)


def test_bootstrap_is_the_same_every_time():
    frame = table({"s": spread(11.5)})
    assert only(record(in_range()), frame, None) == only(record(in_range()), frame, None)


def test_each_claim_has_a_bootstrap_of_its_own():
    frame = table({"s": np.random.default_rng(5).normal(11.0, 2.0, N)})
    one, other = judge(record(in_range("one"), in_range("other")), frame, None)
    assert one.bootstrap != other.bootstrap


# --- equivalence ---

EQUIVALENCE_CASES = {
    "zero": ("REPRODUCED", np.zeros(N)),
    "equivalent": ("REPRODUCED", spread(0.1)),
    "different above": ("CONTRADICTED", spread(2.0)),
    "different below": ("CONTRADICTED", spread(-2.0)),
    "near the margin": ("INCONCLUSIVE", spread(0.5)),
    "imprecise": ("INCONCLUSIVE", spread(0.0, around=20.0)),
}


@pytest.mark.parametrize(("word", "gains"), EQUIVALENCE_CASES.values(), ids=list(EQUIVALENCE_CASES))
def test_equivalence(word, gains):
    assert only(record(claim("equivalence")), table({"s": gains}), None).verdict == word


def test_equivalence_has_the_interval_of_two_one_sided_tests():
    v = only(record(claim("equivalence")), table({"s": spread(0.1)}), None)
    half = scipy_stats.t.ppf(0.95, N - 1) * ERROR
    assert (v.low, v.high) == pytest.approx((0.1 - half, 0.1 + half))


def test_equivalence_p_is_that_of_the_nearer_margin():
    v = only(record(claim("equivalence")), table({"s": spread(0.1)}), None)
    assert v.p == pytest.approx(scipy_stats.t.sf(0.4 / ERROR, N - 1), rel=1e-6)


def test_exactly_zero_is_said_and_not_tested():
    v = only(record(claim("equivalence")), table({"s": np.zeros(N)}), None)
    assert (v.p, v.bootstrap, "exactly zero" in v.detail) == (None, None, True)


def test_equivalence_uses_the_claims_margin():
    wide = claim("equivalence", margin=3.0)
    assert only(record(wide), table({"s": spread(2.0)}), None).verdict == "REPRODUCED"


# --- improvement ---

IMPROVEMENT_CASES = {
    "better": ("REPRODUCED", spread(1.0)),
    "worse": ("CONTRADICTED", spread(-1.0)),
    "exactly the same": ("CONTRADICTED", np.zeros(N)),
    "uncertain": ("INCONCLUSIVE", spread(0.1)),
}


@pytest.mark.parametrize(("word", "gains"), IMPROVEMENT_CASES.values(), ids=list(IMPROVEMENT_CASES))
def test_improvement(word, gains):
    assert only(record(claim("improvement")), table({"s": gains}), None).verdict == word


def test_improvement_p_is_one_sided():
    v = only(record(claim("improvement")), table({"s": spread(0.2)}), None)
    assert v.p == pytest.approx(scipy_stats.t.sf(0.2 / ERROR, N - 1), rel=1e-6)


def test_improvement_of_one_seed_is_inconclusive():
    v = only(record(claim("improvement")), table({"s": [40.0]}), None)
    assert (v.verdict, v.p) == ("INCONCLUSIVE", 1.0)


# --- judges ---

OPEN = Variant(uses_per_learn=0, cadence_days=30, proposer="full move")


def reviews(insufficient, of=12, scenario="s", arm="review", variant=OPEN.label):
    return pd.DataFrame(
        {
            "scenario": scenario,
            "arm": arm,
            "variant": variant,
            "seed": np.arange(len(insufficient)),
            "reviews": of,
            "insufficient": insufficient,
            "accepted": 1,
        }
    )


JUDGES_CASES = {
    "REPRODUCED": [0, 0, 1, 0],
    "CONTRADICTED": [12, 12, 11, 12],
    "INCONCLUSIVE": [0, 12, 0, 12],
}


@pytest.mark.parametrize(("word", "insufficient"), JUDGES_CASES.items(), ids=JUDGES_CASES)
def test_judges(word, insufficient):
    own = claim("judges", variant=OPEN, threshold=50.0)
    assert only(record(own), reviews(insufficient), None).verdict == word


def test_judges_at_the_threshold_exactly_is_reproduced():
    own = claim("judges", variant=OPEN, threshold=50.0)
    assert only(record(own), reviews([6, 6, 6]), None).verdict == "REPRODUCED"


def test_judges_averages_scenarios_within_a_seed():
    frame = pd.concat([reviews([0, 12]), reviews([12, 0], scenario="t")])
    own = claim("judges", variant=OPEN, threshold=40.0, scenarios=("s", "t"))
    v = only(record(own), frame, None)
    assert (v.estimate, v.low, v.high, v.n) == (50.0, 50.0, 50.0, 2)


def test_judges_looks_at_its_variant_only():
    frame = pd.concat([reviews([12, 12]), reviews([0, 0], variant="other")])
    own = claim("judges", variant=OPEN, threshold=50.0)
    assert only(record(own), frame, None).estimate == 0.0


def test_judges_looks_at_the_treatment_only():
    control = reviews([0, 0], arm="baseline", variant="")
    frame = pd.concat([reviews([3, 3], variant=""), control])
    assert only(record(claim("judges", threshold=50.0)), frame, None).estimate == 75.0


def test_judges_counts_reviews_and_amendments():
    own = claim("judges", variant=OPEN, threshold=50.0)
    v = only(record(own), reviews([2, 4]), None)
    assert v.detail == "18 of 24 reviews could judge; 2 amendments"


# --- promise ---


def occasions(*counts):
    return pd.DataFrame({"variant": [label for label, _ in counts], "x": [n for _, n in counts]})


def test_a_promise_is_held_if_occasions_arose():
    v = only(record(claim("promise", counts="x")), occasions(("", 3)), None)
    assert (v.verdict, v.n, v.estimate, v.high) == ("HELD", 3, 0.0, 0.0)


def test_a_promise_without_occasion_is_inconclusive():
    v = only(record(claim("promise", counts="x")), occasions(("", 0)), None)
    assert (v.verdict, v.n, v.high) == ("INCONCLUSIVE", 0, math.inf)


def test_a_promise_without_occasion_says_so():
    v = only(record(claim("promise", counts="x")), occasions(("", 0)), None)
    assert v.detail == "no occasion arose"


def test_a_promise_counts_headline_and_reversions_but_not_the_sensitivity_cells():
    frame = occasions(("", 3), ("reversions", 4), (OPEN.label, 50))
    assert only(record(claim("promise", counts="x")), frame, None).n == 7


def test_a_promise_bounds_the_rate_by_the_rule_of_three():
    v = only(record(claim("promise", counts="x")), occasions(("", 300)), None)
    assert "below 1.0e-02 at 95 %" in v.detail


# --- replay ---


def replay(*gaps, digits=1):
    replayed = np.round(70.0 + np.array(gaps), 9)
    return pd.DataFrame({"published": 70.0, "replayed": replayed, "digits": digits})


REPLAY_CASES = {
    "to the digit": ("REPRODUCED", replay(0.02, -0.05)),
    "not to the digit": ("CONTRADICTED", replay(0.0, -0.051)),
    "to two digits": ("REPRODUCED", replay(0.005, -0.004, digits=2)),
    "not to two digits": ("CONTRADICTED", replay(0.0051, digits=2)),
    "each by its own digits": ("REPRODUCED", replay(0.05, 0.005, digits=[1, 2])),
    "each by its own digits, the other way": ("CONTRADICTED", replay(0.05, 0.005, digits=[2, 1])),
}


@pytest.mark.parametrize(("word", "figures"), REPLAY_CASES.values(), ids=list(REPLAY_CASES))
def test_replay(word, figures):
    assert only(record(claim("replay")), table({"s": [0.0]}), figures).verdict == word


def test_a_replay_on_the_brink_is_no_matter_of_rounding_errors():
    # 0.1 + 0.2 - 0.25 is a hair more than 0.05.
    figures = pd.DataFrame({"published": [0.25], "replayed": [0.1 + 0.2], "digits": [1]})
    assert figures["replayed"][0] - 0.25 > 0.05
    assert only(record(claim("replay")), table({"s": [0.0]}), figures).verdict == "REPRODUCED"


def test_replay_shows_the_share_of_figures_that_are_their_replay():
    v = only(record(claim("replay")), table({"s": [0.0]}), replay(0.02, -0.06, 0.0, 0.03))
    assert (v.estimate, v.low, v.high, v.n, v.unit) == (75.0, 75.0, 75.0, 4, "%")
    assert v.detail == "3 of 4 published figures are their replay, rounded"


def test_replay_without_its_table_is_refused():
    with pytest.raises(ValueError, match="needs the replay table"):
        judge(record(claim("replay")), table({"s": [0.0]}), None)


# --- families ---

# One-sided p between 0.0125 and 0.0167: too large for a Holm family of four, not on its own.
SHADE = spread(9.0 - 2.25 * ERROR)
BETTER = spread(2.1 * ERROR)  # p between 0.0167 and 0.025


def gains_in_family(family, shade=SHADE):
    own = record(*(in_range(f"c{i}", scenarios=(f"s{i}",), family=family) for i in range(4)))
    return judge(own, table({"s0": shade, **{f"s{i}": spread(11.5) for i in (1, 2, 3)}}), None)


def test_below_stands_on_its_own():
    assert gains_in_family("")[0].verdict == "BELOW"


def test_below_that_does_not_survive_holm_is_softened():
    assert gains_in_family("gains")[0].verdict == "CONSISTENT"


def test_above_that_does_not_survive_holm_is_softened():
    assert gains_in_family("gains", shade=23.0 - SHADE)[0].verdict == "CONSISTENT"


def test_below_that_survives_holm_stands():
    assert gains_in_family("gains", shade=spread(4.0))[0].verdict == "BELOW"


def test_holm_multiplies_the_smallest_p_by_the_size_of_the_family():
    assert gains_in_family("gains")[0].p == pytest.approx(4 * gains_in_family("")[0].p)


def test_reproduced_ranges_are_left_alone_by_holm():
    assert [v.verdict for v in gains_in_family("gains")[1:]] == ["REPRODUCED"] * 3


def improvements(family):
    own = [claim("improvement", f"c{i}", scenarios=(f"s{i}",), family=family) for i in range(3)]
    return judge(record(*own), table({"s0": BETTER, "s1": spread(0.0), "s2": spread(0.0)}), None)


def test_improvement_stands_on_its_own():
    assert improvements("")[0].verdict == "REPRODUCED"


def test_improvement_that_does_not_survive_holm_is_softened():
    assert improvements("aligned")[0].verdict == "INCONCLUSIVE"


def test_equivalence_that_does_not_survive_holm_is_softened():
    near = spread(0.5 - 2.1 * ERROR)
    own = [claim("equivalence", f"c{i}", scenarios=(f"s{i}",), family="f") for i in range(3)]
    frame = table({"s0": near, "s1": spread(0.5), "s2": spread(0.5)})
    alone = only(record(own[0].model_copy(update={"family": ""})), frame, None)
    words = [alone.verdict, judge(record(*own), frame, None)[0].verdict]
    assert words == ["REPRODUCED", "INCONCLUSIVE"]


def test_what_was_not_tested_takes_no_part_in_its_family():
    own = [claim("equivalence", f"c{i}", scenarios=(f"s{i}",), family="f") for i in range(2)]
    zero, other = judge(record(*own), table({"s0": np.zeros(N), "s1": spread(0.1)}), None)
    alone = only(record(claim("equivalence", scenarios=("s1",))), table({"s1": spread(0.1)}), None)
    assert (zero.p, zero.verdict, other.p) == (None, "REPRODUCED", alone.p)


def test_a_family_does_not_affect_claims_outside_it():
    frame = table({"s": SHADE, "t": spread(11.5)})
    claims = [
        in_range("shade"),
        in_range("f1", family="f", scenarios=("t",)),
        in_range("f2", family="f", scenarios=("t",)),
    ]
    assert judge(record(*claims), frame, None)[0] == only(record(claims[0]), frame, None)


def test_families_do_not_affect_each_other():
    frame = table({"s": SHADE, "t": spread(11.5)})
    own = [in_range("a", family="a"), in_range("t", family="a", scenarios=("t",))]
    others = [in_range(f"b{i}", family="b", scenarios=("t",)) for i in range(5)]
    assert judge(record(*own, *others), frame, None)[:2] == judge(record(*own), frame, None)


def test_verdicts_come_in_the_files_order():
    claims = [in_range("z", family="f"), in_range("a"), in_range("m", family="f")]
    frame = table({"s": spread(11.5)})
    assert [v.id for v in judge(record(*claims), frame, None)] == ["z", "a", "m"]


# --- words and plain data ---


def test_every_word_is_reachable():
    frame = table({"s": [0.0]})
    said = {only(record(in_range()), table({"s": gains}), None).verdict for gains in
            RANGE_CASES.values()}  # fmt: skip
    said.add(only(record(claim("replay")), frame, replay(1.0)).verdict)
    said.add(only(record(claim("promise", counts="x")), occasions(("", 3)), None).verdict)
    assert said == set(WORDS)


def test_words_are_those_of_the_type():
    assert typing.get_args(Word) == WORDS


def test_contradicting_words_are_words():
    assert set(WORDS) > CONTRADICTING == {"ABOVE", "BELOW", "CONTRADICTED"}


UNBOUNDED = {
    "range": in_range(),
    "equivalence": claim("equivalence"),
    "improvement": claim("improvement"),
}


@pytest.mark.parametrize("own", UNBOUNDED.values(), ids=UNBOUNDED)
@pytest.mark.parametrize("gain", [0.0, 3.0])
def test_plain_verdicts_of_one_seed_are_json(own, gain):
    plain = only(record(own), table({"s": [gain]}), None).plain()
    json.dumps(plain, allow_nan=False)
    assert (plain["low"], plain["high"], plain["bootstrap"]) == (None, None, None)


def test_plain_promise_without_occasion_is_json():
    plain = only(record(claim("promise", counts="x")), occasions(("", 0)), None).plain()
    assert json.loads(json.dumps(plain, allow_nan=False))["high"] is None


def test_plain_verdict_keeps_every_number():
    v = only(record(in_range()), table({"s": spread(11.5)}), None)
    plain = json.loads(json.dumps(v.plain(), allow_nan=False))
    assert {**plain, "bootstrap": tuple(plain["bootstrap"])} == vars(v)


# --- sensitivity ---

PLAN = Sensitivity(
    drifting=("s", "t"),
    stable="calm",
    seeds=2,
    uses_per_learn=(0, 3),
    cadence_days=(30, 90),
    proposers={"full": {}, "half": {}},
    low=9.0,
    high=14.0,
    margin=0.5,
)
# Gain and tax of each cell, in the plan's order, with the verdicts they deserve.
CELLS = [
    (spread(4.0), np.zeros(N), "BELOW", "REPRODUCED"),
    (spread(11.5), spread(2.0), "REPRODUCED", "CONTRADICTED"),
    (spread(20.0), spread(0.5), "ABOVE", "INCONCLUSIVE"),
    (spread(9.1), spread(0.1), "CONSISTENT", "REPRODUCED"),
    (spread(11.5, 10.0), spread(-2.0), "INCONCLUSIVE", "CONTRADICTED"),
    (spread(-3.0), np.zeros(N), "BELOW", "REPRODUCED"),
    (spread(12.0), np.zeros(N), "REPRODUCED", "REPRODUCED"),
    (spread(30.0), spread(9.0), "ABOVE", "CONTRADICTED"),
]


@pytest.fixture(scope="module")
def sensitivity():
    parts = []
    for i, (variant, (gain, tax, *_)) in enumerate(zip(PLAN.variants, CELLS, strict=True)):
        # The two drifting scenarios differ, so that only their mean is the gain.
        cell = table({"s": gain - 1, "t": gain + 1, "calm": tax}, variant=variant.label)
        cell.loc[cell["arm"] == "baseline", "variant"] = variant.control_label
        cell["reviews"] = 12
        cell["insufficient"] = np.where(cell["scenario"] == "calm", 12, i)
        cell["accepted"] = np.where(cell["scenario"] == "calm", 99, 2 * i)
        parts.append(cell)
    frame = pd.concat(parts).drop_duplicates(["scenario", "arm", "variant", "seed"])
    return judge_sensitivity(PLAN, "review", "baseline", frame, "quality_ratio")


def test_sensitivity_has_one_row_per_combination(sensitivity):
    keys = ["uses_per_learn", "cadence_days", "proposer"]
    found = [Variant(**row) for row in sensitivity[keys].to_dict("records")]
    assert found == PLAN.variants


def test_sensitivity_judges_the_gain_of_each_cell(sensitivity):
    assert sensitivity["gain_verdict"].tolist() == [word for _, _, word, _ in CELLS]


def test_sensitivity_judges_the_tax_of_each_cell(sensitivity):
    assert sensitivity["tax_verdict"].tolist() == [word for _, _, _, word in CELLS]


def test_sensitivity_gain_is_the_equal_weight_mean_over_the_drifting_scenarios(sensitivity):
    expected = [gain.mean() for gain, *_ in CELLS]
    assert sensitivity["gain"].tolist() == pytest.approx(expected)


def test_sensitivity_tax_is_of_the_stable_scenario(sensitivity):
    assert sensitivity["tax"].tolist() == pytest.approx([tax.mean() for _, tax, *_ in CELLS])


def test_sensitivity_share_of_reviews_that_judge_is_of_the_drifting_scenarios(sensitivity):
    assert sensitivity["judged"].tolist() == pytest.approx([100 * (12 - i) / 12 for i in range(8)])


def test_sensitivity_amendments_are_per_run_of_the_drifting_scenarios(sensitivity):
    assert sensitivity["amendments"].tolist() == [2.0 * i for i in range(8)]


def test_sensitivity_gives_the_number_of_seeds(sensitivity):
    assert sensitivity["n"].tolist() == [N] * 8


def test_sensitivity_compares_with_the_control_of_the_same_use():
    plan = PLAN.model_copy(update={"cadence_days": (30,), "proposers": {"full": {}}})
    parts = []
    for variant in plan.variants:
        cell = table({s: spread(11.5) for s in ("s", "t", "calm")}, variant=variant.label)
        cell.loc[cell["arm"] == "baseline", "variant"] = variant.control_label
        cell["quality_ratio"] -= 0.3 * (variant.uses_per_learn == 3)
        parts.append(cell.assign(reviews=1, insufficient=0, accepted=0))
    frame = judge_sensitivity(plan, "review", "baseline", pd.concat(parts), "quality_ratio")
    assert frame["gain"].tolist() == pytest.approx([11.5, 11.5])


# --- the verdict can go either way ---
#
# The generators are seeded, so the counts are always the same; the bounds are what the binomial
# distribution allows. The bootstrap decides nothing and is left out for speed.


@pytest.fixture
def without_bootstrap(monkeypatch):
    monkeypatch.setattr(module, "bca_interval", lambda values, rng: (0.0, 0.0))


@pytest.mark.usefixtures("without_bootstrap")
@pytest.mark.parametrize(
    ("gain", "word", "least"),
    # A true gain of 11 pp (standard error 0.6) is shown to lie above 9 in 91 % of the studies.
    [(11.0, "REPRODUCED", 75), (4.0, "BELOW", 100), (20.0, "ABOVE", 100)],
    ids=["true", "too small", "too large"],
)
def test_range_verdict_follows_the_truth(gain, word, least):
    rng = np.random.default_rng(int(gain))
    words = [
        only(record(in_range()), table({"s": rng.normal(gain, 12.0, 400)}), None).verdict
        for _ in range(100)
    ]
    assert words.count(word) >= least


@pytest.mark.usefixtures("without_bootstrap")
def test_null_studies_raise_false_alarms_no_more_often_than_nominal():
    """Treatment and control differ by chance only, in 2,000 studies of 30 seeds."""
    own = record(claim("equivalence", "tax"), claim("improvement", "gain"))
    rng = np.random.default_rng(2000)
    frame = table({"s": np.zeros(30)}).astype(dict.fromkeys(KEYS, "category"))
    review = (frame["arm"] == "review").to_numpy()
    base = frame["quality_ratio"].to_numpy()[~review]
    contradicted = improved = 0
    for _ in range(2000):
        frame.loc[review, "quality_ratio"] = base + rng.normal(0.0, 0.02, 30)
        tax, gain = judge(own, frame, None)
        contradicted += tax.verdict == "CONTRADICTED"
        improved += gain.verdict == "REPRODUCED"
    # A zero tax is contradicted beyond either margin, at 5 % each, if it sits on the margin: a
    # true zero must do better. An improvement needs the 95 % interval above zero: 2.5 %.
    assert contradicted / 2000 <= 0.05
    assert 0.01 <= improved / 2000 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 2000)


def itself():
    return table({"s": np.zeros(N)})


def test_an_arm_against_itself_has_no_tax():
    v = only(record(claim("equivalence")), itself(), None)
    assert (v.verdict, v.estimate) == ("REPRODUCED", 0.0)


def test_an_arm_against_itself_has_no_gain():
    v = only(record(in_range()), itself(), None)
    assert (v.verdict, v.estimate) == ("BELOW", 0.0)


def test_an_arm_against_itself_is_no_improvement():
    assert only(record(claim("improvement")), itself(), None).verdict != "REPRODUCED"
