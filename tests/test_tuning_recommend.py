"""Tests of `elfmem_sim.tuning.recommend`: the rules, and what fresh seeds make of them."""

import numpy as np
import pytest

from elfmem_sim.tuning.recommend import (
    MARGIN,
    RULES,
    TOLERANCE,
    Candidate,
    admits,
    decision,
    judge,
    pick,
    simplify,
)
from elfmem_sim.tuning.space import Field, Range

FIELDS = [Field(name, 5, Range(0, 10), whole=True) for name in "abc"]
DEFAULTS = Candidate(
    {"a": 5, "b": 5, "c": 5},
    {
        "gain_mean": 5.0, "gain_worst": 3.0, "tax": 0.0, "amendments": 2.0, "calls": 2.0,
        "retention": 90.0, "harm_adversarial": 1.0, "harm_poor_proposer": 1.0,
    },
)  # fmt: skip


def candidate(a=1, b=5, c=5, **values):
    return Candidate({"a": a, "b": b, "c": c}, {**DEFAULTS.values, **values})


# Picking.


@pytest.mark.parametrize("rule", RULES)
def test_without_anything_better_the_defaults_stay(rule):
    worse = candidate(gain_mean=4.0, gain_worst=2.0, amendments=3.0)
    assert pick(rule, FIELDS, [worse], DEFAULTS) == DEFAULTS


@pytest.mark.parametrize("rule", RULES)
def test_what_is_better_in_everything_is_picked(rule):
    better = candidate(gain_mean=9.0, gain_worst=8.0, amendments=1.0)
    assert pick(rule, FIELDS, [better], DEFAULTS) == better


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_takes_a_tax(rule):
    taxed = candidate(gain_mean=50.0, gain_worst=50.0, tax=MARGIN + 0.01)
    assert pick(rule, FIELDS, [taxed], DEFAULTS) == DEFAULTS


def test_a_tax_that_the_defaults_have_too_is_no_reason():
    assert admits("balanced", {"tax": 2.0}, {"tax": 2.0})


@pytest.mark.parametrize(
    "value", [{"harm_adversarial": 1.1}, {"harm_poor_proposer": 1.1}, {"retention": 89.0}]
)
def test_the_conservative_rule_never_harms_more(value):
    harmful = candidate(gain_mean=50.0, gain_worst=50.0, **value)
    assert pick("conservative", FIELDS, [harmful], DEFAULTS) == DEFAULTS
    assert pick("responsive", FIELDS, [harmful], DEFAULTS) == harmful


def test_the_conservative_rule_looks_at_the_worst_scenario():
    mean, worst = candidate(a=1, gain_mean=20.0), candidate(a=2, gain_worst=4.0)
    assert pick("conservative", FIELDS, [mean, worst], DEFAULTS) == worst
    assert pick("responsive", FIELDS, [mean, worst], DEFAULTS) == mean


def test_the_balanced_rule_prefers_the_middle():
    much = candidate(a=1, gain_mean=20.0, amendments=20.0, calls=20.0)
    middle = candidate(a=2, gain_mean=17.0, amendments=5.0, calls=5.0)
    assert pick("balanced", FIELDS, [much, middle], DEFAULTS) == middle


def test_of_equals_the_fewest_amendments_win():
    many, few = candidate(a=1, gain_mean=9.0), candidate(a=2, gain_mean=9.0, amendments=1.0)
    assert pick("responsive", FIELDS, [many, few], DEFAULTS) == few


def test_of_equals_with_as_many_amendments_the_fewest_changes_win():
    two, one = candidate(a=1, b=1, gain_mean=9.0), candidate(a=2, gain_mean=9.0)
    assert pick("responsive", FIELDS, [two, one], DEFAULTS) == one


def test_rules_do_without_objectives_that_are_not_there():
    few = {"gain_mean": 1.0, "gain_worst": 1.0, "amendments": 1.0}
    plain = Candidate(DEFAULTS.config, few)
    better = Candidate({"a": 1, "b": 5, "c": 5}, {**few, "gain_mean": 2.0, "gain_worst": 2.0})
    assert [pick(rule, FIELDS, [better], plain) for rule in RULES] == [better] * len(RULES)


# Simplifying.


def gain_from_a_alone(config):
    return {**DEFAULTS.values, "gain_mean": 9.0 if config["a"] != 5 else 5.0}


def simpler(chosen, evaluate=gain_from_a_alone, order="cba", rule="responsive"):
    return simplify(rule, FIELDS, chosen, DEFAULTS, list(order), evaluate)


def test_fields_that_contribute_nothing_go_back_to_the_default():
    chosen = candidate(a=1, b=1, c=1, gain_mean=9.0)
    assert simpler(chosen).config == {"a": 1, "b": 5, "c": 5}


def test_what_is_left_has_its_own_objectives():
    chosen = candidate(a=1, b=1, c=1, gain_mean=9.1)
    assert simpler(chosen).values["gain_mean"] == 9.0


@pytest.mark.parametrize(("loss", "left"), [(0.9, 5), (1.1, 1)])
def test_a_loss_is_measured_against_the_tolerance(loss, left):
    def evaluate(config):
        worse = loss * TOLERANCE["pp"] if config["b"] == 5 else 0.0
        return {**gain_from_a_alone(config), "gain_mean": 9.0 - worse}

    assert simpler(candidate(a=1, b=1, gain_mean=9.0), evaluate).config["b"] == left


def test_losses_do_not_add_up_beyond_the_tolerance():
    def evaluate(config):
        back = sum(config[name] == 5 for name in "abc")
        return {**DEFAULTS.values, "gain_mean": 9.0 - 0.8 * TOLERANCE["pp"] * back}

    chosen = candidate(a=1, b=1, c=1, gain_mean=9.0)
    assert simpler(chosen, evaluate, order="abc").config == {"a": 5, "b": 1, "c": 1}


def test_what_the_rule_would_not_admit_is_not_simpler():
    def evaluate(config):
        harm = 1.01 if config["b"] == 5 else 1.0
        return {**gain_from_a_alone(config), "harm_adversarial": harm}

    chosen = candidate(a=1, b=1, gain_mean=9.0)
    assert simpler(chosen, evaluate, rule="conservative").config["b"] == 1
    assert simpler(chosen, evaluate, rule="responsive").config["b"] == 5


def test_the_defaults_need_no_evaluation():
    def evaluate(config):
        raise AssertionError("nothing to try")

    assert simpler(DEFAULTS, evaluate) == DEFAULTS


# Judging.


def judged(gain, n=40, **worse):
    """Judge one recommendation whose objectives differ by these means, with noise."""
    noise = np.random.default_rng(1).normal(0.0, 0.3, n)
    default = {name: np.full(n, 5.0) for name in ("gain_mean", "tax", "harm_adversarial")}
    values = {name: v + worse.get(name, 0.0) for name, v in default.items()}
    values["gain_mean"] = default["gain_mean"] + gain + noise
    settings = {"balanced": {"a": 1}}
    return judge(settings, {"a": 5}, {"balanced": values}, default)[0]


def test_a_clear_gain_without_harm_is_earned():
    assert judged(2.0).earned


def test_no_gain_is_not_earned():
    assert not judged(0.0).earned


def test_a_loss_is_not_earned():
    assert not judged(-2.0).earned


@pytest.mark.parametrize("cost", ["tax", "harm_adversarial"])
def test_a_cost_beyond_the_margin_spoils_a_gain(cost):
    found = judged(2.0, **{cost: MARGIN + 0.1})
    assert found.spoiled == (cost,)
    assert not found.earned


def test_a_cost_below_the_margin_does_not():
    assert judged(2.0, tax=MARGIN - 0.1).spoiled == ()


def test_two_seeds_cannot_show_that_there_is_no_harm():
    n = 2
    default = {"gain_mean": np.zeros(n), "tax": np.zeros(n)}
    values = {"gain_mean": np.ones(n), "tax": np.array([0.0, 0.4])}
    found = judge({"balanced": {"a": 1}}, {"a": 5}, {"balanced": values}, default)[0]
    assert found.spoiled == ("tax",)


def test_p_values_are_adjusted_for_the_number_of_recommendations():
    rng = np.random.default_rng(3)
    default = {"gain_mean": np.zeros(20)}
    values = {"gain_mean": rng.normal(0.4, 1.0, 20)}
    one = judge({"x": {}}, {"a": 5}, {"x": values}, default)[0]
    nothing = {"gain_mean": rng.normal(0.0, 1.0, 20) - 1.0}
    both = judge({"x": {}, "y": {}}, {"a": 5}, {"x": values, "y": nothing}, default)[0]
    assert both.p == pytest.approx(2 * one.p)


def test_judging_noise_seldom_finds_a_gain():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(400):
        default = {"gain_mean": np.zeros(20)}
        values = {rule: {"gain_mean": rng.normal(0.0, 1.0, 20)} for rule in RULES}
        judgements = judge({rule: {} for rule in RULES}, {"a": 5}, values, default)
        found += decision(judgements) is not None
    # 5 % expected; more than 8.5 % has a chance below one in a thousand.
    assert found <= 34


def test_the_same_settings_are_said_to_be_the_same():
    default = {"gain_mean": np.ones(3)}
    found = judge({"x": {"a": 5}}, {"a": 5}, {"x": default}, default)[0]
    assert found.same
    assert not found.earned


def test_the_most_cautious_that_earned_its_place_decides():
    lost, won = judged(-1.0), judged(2.0)
    assert decision([lost, won, judged(9.0)]) is won


def test_nothing_earned_decides_nothing():
    assert decision([judged(0.0), judged(-1.0)]) is None
