"""What the self-architect's objective sees, and that looking changes nothing."""

import math
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from elfmem_sim import objective
from elfmem_sim.arms import ARMS
from elfmem_sim.fields import KNOBS
from elfmem_sim.kernel.adapt import HIGHEST, LOWEST, SHADOW_SEEDS, adapt, evaluate
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.rng import below
from elfmem_sim.kernel.state import TOP_K
from elfmem_sim.objective import (
    CHOICES,
    COMMON,
    EVALUATIONS,
    OBJECTIVES,
    PUBLISHED,
    QUERIES,
    RESPONSES,
    ROLLOUT,
    candidates,
    choices,
    observe,
    observe_objectives,
    responses,
)
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import prepare, simulate

STABLE = load_scenario("adr-0003-self-architect/stable")
SEEDS = (0, 1, 2)
WEIGHT, *OTHERS = KNOBS


@pytest.fixture(scope="module")
def evaluations() -> pd.DataFrame:
    return observe_objectives(SEEDS, [STABLE.name], rollout_seeds=1)


# Looking changes nothing.


@pytest.mark.parametrize("objectives", [(PUBLISHED,), OBJECTIVES], ids=["published", "all"])
def test_a_measured_life_is_the_life_bit_for_bit(objectives):
    measured, _ = observe(STABLE, 1, objectives)
    plain = simulate(STABLE, ARMS[PUBLISHED], 1)
    agent, rules, calendar = prepare(STABLE, ARMS[PUBLISHED], 1)
    lived = 0
    for day, _ in plain.moves:
        advance(agent, rules, calendar, lived, day + 1)
        adapt(agent, rules, calendar, day)
        lived = day + 1
    advance(agent, rules, calendar, lived, 365)
    # The probe stream is seeded anew before every use, and the last one is a measurement's.
    unmeasured = [*agent[:-2], *agent.stream]
    for one, other in zip([*measured[:-2], *measured.stream], unmeasured, strict=True):
        assert np.array_equal(one, other)
    assert tuple(measured.knobs.tolist()) == plain.knobs


def test_the_step_marked_as_chosen_is_the_runs_move(evaluations):
    for seed in SEEDS:
        moves = dict(simulate(STABLE, ARMS[PUBLISHED], seed).moves)
        mine = evaluations[(evaluations["seed"] == seed) & (evaluations["objective"] == PUBLISHED)]
        assert list(dict.fromkeys(mine["day"])) == list(moves)
        taken = mine[mine["chosen"]]
        signs = taken["direction"].map({-1: "-", 1: "+"})
        named = dict(zip(taken["day"], taken["knob"] + signs, strict=True))
        assert {day: named.get(day, "baseline") for day in moves} == moves


# Candidates.


def test_candidates_are_one_step_from_the_present_and_inside_the_ranges():
    start = np.array([0.0, 0.1, 1.0, 2.0])
    assert candidates(start) == [
        (0, 1, 0.2), (1, -1, pytest.approx(0.08)), (2, 1, 2.0), (3, -1, 1.0), (3, 1, 3.0),
    ]  # fmt: skip


def test_no_candidate_leaves_a_range():
    for knobs in (LOWEST, HIGHEST, LOWEST + 0.9 * (HIGHEST - LOWEST)):
        for step in candidates(knobs):
            assert LOWEST[step.knob] <= step.value <= HIGHEST[step.knob]


@pytest.mark.parametrize("seed", [0, 3])
def test_best_candidate_on_common_draws_is_the_one_that_the_kernel_turns_to(seed):
    agent, rules, calendar = prepare(STABLE, ARMS[ROLLOUT], seed)
    advance(agent, rules, calendar, 0, 57)
    draws = below(deepcopy(agent).stream, SHADOW_SEEDS)
    scratch = np.empty(8), np.empty(TOP_K), np.empty(TOP_K, np.int64)

    def value(knobs):
        return evaluate(agent, rules, calendar, 56, knobs, draws, *scratch)

    gains = {}
    for step in candidates(agent.knobs):
        knobs = agent.knobs.copy()
        knobs[step.knob] = step.value
        gains[step] = value(knobs) - value(agent.knobs)
    adapt(agent, rules, calendar, 56)
    best = max(gains, key=gains.get)
    turned = [best.knob, best.direction] if gains[best] > 0.0 else [-1, 0]
    assert agent.moves[0].tolist() == [56, *turned]


# Evaluations.


def test_columns_are_the_stated_ones(evaluations):
    assert tuple(evaluations.columns) == EVALUATIONS


def test_every_candidate_has_a_row_per_objective(evaluations):
    rows = evaluations.groupby(["seed", "day", "knob", "direction"])["objective"].agg(tuple)
    seeds = rows.index.get_level_values("seed")
    assert set(rows[seeds == 0]) == {OBJECTIVES}
    assert set(rows[seeds > 0]) == {OBJECTIVES[:3]}


def test_knobs_that_change_no_state_get_no_response_from_shadow_queries(evaluations):
    shadow = evaluations[(evaluations["objective"] != ROLLOUT) & (evaluations["knob"] != WEIGHT)]
    assert set(shadow["knob"]) == set(OTHERS)
    assert (shadow["common"] == 0.0).all()


def test_the_published_objective_moves_although_nothing_responds(evaluations):
    published = evaluations[evaluations["objective"] == PUBLISHED]
    unseen = published[published["common"] == 0.0]
    assert (unseen["first"] != 0.0).all()
    assert (unseen["second"] != 0.0).all()


def test_control_of_an_objective_with_common_draws_is_zero(evaluations):
    nulls = evaluations.groupby("objective")["null"].agg(lambda null: (null == 0.0).all())
    assert nulls.to_dict() == {PUBLISHED: False, COMMON: True, QUERIES: True, ROLLOUT: True}


def test_rolling_out_changes_no_other_number(evaluations):
    without = observe_objectives([0], [STABLE.name])
    both = evaluations[(evaluations["seed"] == 0) & (evaluations["objective"] != ROLLOUT)]
    pd.testing.assert_frame_equal(without, both.reset_index(drop=True))


def test_result_does_not_depend_on_the_workers(monkeypatch, evaluations):
    monkeypatch.setattr(objective, "_SEEDS_PER_TASK", 1)
    spread = observe_objectives(SEEDS, [STABLE.name], rollout_seeds=1, workers=2)
    pd.testing.assert_frame_equal(spread, evaluations)


def test_no_seeds_are_refused():
    with pytest.raises(ValueError, match="no seeds"):
        observe_objectives([])


# Responses, of a table made up so that every number is known.


def made_up(objective: str, differences, *, seeds=None, knob=WEIGHT, chosen=None) -> pd.DataFrame:
    """One step of one knob on one day of each seed; ``common, first, second, null`` per seed."""
    n = len(differences)
    frame = pd.DataFrame(differences, columns=["common", "first", "second", "null"])
    return frame.assign(
        scenario="made up",
        seed=seeds or list(range(n)),
        day=list(range(n)),
        knob=knob,
        direction=1,
        value=0.0,
        candidate=0.2,
        weight=0.0,
        chosen=chosen or [False] * n,
        objective=objective,
    )[list(EVALUATIONS)].astype({"common": float, "first": float, "second": float, "null": float})


PRECISE = made_up(QUERIES, [(2, 2, 4, 0), (0, 0, 0, 0), (-1, -1, -1, 0)], seeds=[0, 0, 1])
NOISY = made_up(PUBLISHED, [(3, 5, 1, 6), (0, -4, 4, 0), (1, 1, -3, 0)], seeds=[0, 0, 1])


def response(objective: str, *tables: pd.DataFrame):
    found = responses(pd.concat(tables, ignore_index=True))
    (only,) = found[found["objective"] == objective].itertuples()
    return only


def test_mean_response_is_clustered_by_seed():
    found = response(PUBLISHED, PRECISE, NOISY)
    assert (found.n, found.seeds, found.mean) == (3, 2, pytest.approx((1.5 + 1.0) / 2))
    half = 12.706204736 * 0.25  # Student's quantile with one degree of freedom
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))


def test_noise_is_what_two_measurements_of_one_step_do_not_share():
    found = response(PUBLISHED, PRECISE, NOISY)
    assert found.noise == pytest.approx(math.sqrt((16 + 64 + 16) / 3 / 2))
    assert found.sd == pytest.approx(np.std([5, -4, 1], ddof=1))
    assert found.sd_null == pytest.approx(np.std([6, 0, 0], ddof=1))


@pytest.mark.parametrize("objective", [PUBLISHED, QUERIES])
def test_signal_comes_from_the_most_precise_objective(objective):
    found = response(objective, PRECISE, NOISY)
    assert found.signal == pytest.approx(math.sqrt((8 + 0 + 1) / 3))
    assert found.signal_to_noise == pytest.approx(found.signal / found.noise)


def test_agreement_counts_signs_where_there_is_a_true_one():
    assert response(PUBLISHED, PRECISE, NOISY).agreement == 50.0


def test_a_step_without_true_responses_has_no_signal_and_no_agreement():
    silent = made_up(QUERIES, [(0, 0, 0, 0)] * 3, seeds=[0, 0, 1])
    found = response(PUBLISHED, silent, NOISY)
    assert (found.signal, found.signal_to_noise) == (0.0, 0.0)
    assert math.isnan(found.agreement)


@pytest.mark.parametrize(
    ("differences", "zero", "visibility"),
    [
        ([(0, 0, 0, 0), (0, 0, 0, 0)], 100.0, "invisible"),
        ([(0, 0, 0, 0), (1, 1, 0, 0)], 50.0, "visible"),
        ([(0, 0, 0, 0), (0, 0, 1, 0)], 50.0, "visible"),
    ],
)
def test_a_knob_is_invisible_if_every_response_on_common_draws_is_zero(
    differences, zero, visibility
):
    found = response(QUERIES, made_up(QUERIES, differences))
    assert (found.zero, found.visibility) == (zero, visibility)


def test_draws_of_their_own_make_no_knob_visible():
    precise, noisy = made_up(QUERIES, [(0, 0, 0, 0)]), made_up(PUBLISHED, [(0, 3, -2, 1)])
    assert response(PUBLISHED, precise, noisy).visibility == "invisible"


def test_an_objective_that_misses_the_signal_has_no_ratio():
    missing = made_up(COMMON, [(0, 0, 0, 0)] * 3, seeds=[0, 0, 1])
    assert math.isnan(response(COMMON, PRECISE, missing).signal_to_noise)


def test_responses_have_the_stated_columns_in_the_order_of_the_knobs(evaluations):
    table = responses(evaluations)
    assert tuple(table.columns) == RESPONSES
    for _, part in table.groupby("objective"):
        order = [(KNOBS.index(row.knob), row.direction) for row in part.itertuples()]
        assert order == sorted(order)


@pytest.mark.parametrize(("name", "seen"), [(QUERIES, False), (ROLLOUT, True)])
def test_only_those_who_live_on_see_who_shares_a_self_query(name, seen):
    agent, rules, calendar = prepare(STABLE, ARMS[PUBLISHED], 0)
    advance(agent, rules, calendar, 0, 57)
    agent.knobs[:] = 1.0, 0.04, 1.0, 2.0  # the constitution counts in ATTENTION
    step = next(s for s in candidates(agent.knobs) if KNOBS[s.knob] == "distribute_n")
    ((common, *_),) = objective._valued(agent, rules, calendar, 56, name, ("stable", 0), [step])
    assert (common != 0.0) == seen


def test_responses_by_weight_split_those_of_all_weights(evaluations):
    split = responses(evaluations, by_weight=True)
    whole = responses(evaluations)
    assert tuple(split.columns) == (*RESPONSES[:4], "weight", *RESPONSES[4:])
    keys = ["objective", "knob", "direction"]
    pd.testing.assert_series_equal(split.groupby(keys)["n"].sum(), whole.groupby(keys)["n"].sum())


def test_the_weight_is_the_present_one(evaluations):
    own = evaluations[evaluations["knob"] == WEIGHT]
    assert (own["weight"] == own["value"]).all()
    assert (evaluations.groupby(["seed", "day"])["weight"].nunique() == 1).all()


# Choices.


def day_of(objective: str, firsts, seconds, taken: int) -> pd.DataFrame:
    """One adaptation with three candidates, of which the run took one (-1 for none)."""
    parts = [
        made_up(objective, [(first, first, second, 0)], knob=knob, chosen=[at == taken])
        for at, (knob, first, second) in enumerate(zip(KNOBS, firsts, seconds, strict=False))
    ]
    return pd.concat(parts, ignore_index=True)


def chosen(tables, chooser: str) -> dict[str, float]:
    found = choices(pd.concat(tables, ignore_index=True))
    assert tuple(found.columns) == CHOICES
    mine = found[found["chooser"] == chooser]
    return dict(zip(mine["quantity"], mine["mean"], strict=True))


# The first knob responds, and the other two never do; the run took the second.
DAY = [
    day_of(PUBLISHED, [0, 0, 0], [0, 0, 0], 1),
    day_of(COMMON, [-1, 0, 0], [-1, 0, 0], 1),
    day_of(QUERIES, [3, 0, 0], [5, 0, 0], 1),
    day_of(ROLLOUT, [1, 2, 0], [7, -1, 0], 1),
]


@pytest.mark.parametrize(
    ("chooser", "expected"),
    [
        (PUBLISHED, (100.0, 100.0, 100.0, 0.0, -1.0)),
        (QUERIES, (100.0, 0.0, 0.0, 5.0, 7.0)),
        (ROLLOUT, (100.0, 100.0, 100.0, 0.0, -1.0)),
        (objective.BLIND, (75.0, 200 / 3, 200 / 3, 5 / 4, 6 / 4)),
    ],
)
def test_choice_is_counted_and_judged_by_draws_that_no_chooser_has_seen(chooser, expected):
    names = ("moves", "invisible", "no_effect", "shadow_gain", "rollout_gain")
    assert chosen(DAY, chooser) == pytest.approx(dict(zip(names, expected, strict=True)))


def test_an_objective_that_favours_no_candidate_does_not_move():
    assert chosen(DAY, COMMON) == {"moves": 0.0, "shadow_gain": 0.0, "rollout_gain": 0.0}


def test_a_visible_knob_can_be_turned_without_effect():
    later = [part.assign(day=99) for part in DAY[:2]]
    later.append(day_of(QUERIES, [0, 0, 0], [0, 0, 0], 0).assign(day=99))
    later = [part.assign(chosen=part["knob"] == WEIGHT) for part in later]
    found = chosen([*DAY[:3], *later], PUBLISHED)
    assert (found["invisible"], found["no_effect"]) == (50.0, 100.0)


def test_the_coin_is_compared_on_the_same_days(evaluations):
    found = choices(evaluations).set_index(["chooser", "quantity"])
    sizes = evaluations[evaluations["objective"] == QUERIES].groupby(["seed", "day"]).size()
    expected = (sizes / (sizes + 1)).groupby("seed").mean().mean()
    assert found.loc[(objective.BLIND, "moves"), "mean"] == pytest.approx(100 * expected)
