"""Tests of `elfmem_sim.tuning.tables`."""

import numpy as np
import pytest

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.review import GATES, ReviewRecord
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.simulate import simulate
from elfmem_sim.tuning.recommend import judge
from elfmem_sim.tuning.sensitivity import sobol_design, sobol_indices
from elfmem_sim.tuning.space import Field, Range
from elfmem_sim.tuning.tables import (
    REASONS,
    ROBUSTNESS,
    difference_table,
    gate_shares,
    judgement_table,
    robustness_rows,
    sobol_table,
)

FIELDS = [Field(name, 5, Range(0, 10), whole=True) for name in "ab"]


def review(day, *, insufficient=False, proposals=0, failed=0, **reasons):
    return ReviewRecord(
        day=day, insufficient_history=insufficient, reviewed=0, skipped=0, proposals=proposals,
        failed=failed, accepted=0, reasons=reasons,
    )  # fmt: skip


def shares(reviews, day):
    table = gate_shares([("drift", 10, r) for r in reviews])
    rows = table[table["day"] == day].set_index("reason")["share"]
    return {reason: share for reason, share in rows.items() if share}


def test_an_insufficient_history_holds_back_every_block():
    assert shares([review(29, insufficient=True)], 29) == {"insufficient_history": 100.0}


def test_shares_are_over_the_blocks_of_all_seeds():
    found = shares([review(29, drift=8, proposals=2), review(29, drift=10)], 29)
    assert found == {"drift": 90.0, "proposed": 10.0}


def test_a_proposal_that_failed_was_not_held_back():
    assert shares([review(29, cap=9, failed=1)], 29) == {"cap": 90.0, "proposed": 10.0}


def test_days_are_told_apart():
    reviews = [review(29, drift=10), review(59, cooldown=10)]
    assert shares(reviews, 59) == {"cooldown": 100.0}


def test_every_gate_of_elfmem_has_a_name():
    assert set(GATES) | {"cooldown", "insufficient_history", "proposed"} == set(REASONS)


def test_the_reasons_of_a_real_review_account_for_every_block():
    settings = {"review.config.drift_threshold": "0.1", "review.config.max_proposals": "1"}
    world, arm = override(load_scenario("adr-0004/slow_drift"), ARMS["review"], settings)
    run = simulate(world, arm, 0, explain=True)
    table = gate_shares([(world.name, world.constitution.size, r) for r in run.reviews])
    assert table.groupby("day")["n"].first().tolist() == [10] * 12
    assert table.groupby("day")["share"].sum().tolist() == pytest.approx([100.0] * 12)


def indices_of(**functions):
    points = sobol_design(2, 16, np.random.default_rng(0))
    values = {name: function(points) for name, function in functions.items()}
    found = {n: sobol_indices(v, np.random.default_rng(0)) for n, v in values.items()}
    return sobol_table(FIELDS, found, values).set_index(["objective", "field"])


def test_a_field_that_moves_nothing_is_told():
    table = indices_of(tax=lambda p: p[..., 0])
    assert table["unmoved"].to_dict() == {("tax", "a"): 0.0, ("tax", "b"): 100.0}


def test_objectives_with_the_same_values_are_told():
    table = indices_of(amendments=lambda p: p[..., 0], calls=lambda p: p[..., 0])
    assert table["same_as"].to_dict() == {
        ("amendments", "a"): "", ("amendments", "b"): "",
        ("calls", "a"): "amendments", ("calls", "b"): "amendments",
    }  # fmt: skip


def test_objectives_with_the_same_indices_are_not_the_same():
    table = indices_of(amendments=lambda p: p[..., 0], calls=lambda p: 2 * p[..., 0])
    assert set(table["same_as"]) == {""}


def test_differences_are_paired_and_per_condition():
    default = np.arange(2 * 3 * len(ESTIMANDS), dtype=float).reshape(2, 3, -1)
    outcome = default + np.array([1.0, 2.0])[:, None, None]
    table = difference_table({"balanced": outcome}, default, ["x", "y"])
    assert len(table) == 2 * len(ESTIMANDS)
    assert table.groupby("condition")["mean"].first().to_dict() == {"x": 1.0, "y": 2.0}
    assert set(table["mcse"]) == {0.0}


def test_a_judgement_shows_both_values():
    default = {"gain_mean": np.array([1.0, 2.0, 3.0]), "tax": np.zeros(3)}
    values = {"gain_mean": np.array([2.0, 2.0, 5.0]), "tax": np.zeros(3)}
    judged = judge({"x": {"a": 1}}, {"a": 5}, {"x": values}, default)
    row = judgement_table(judged, {"x": values}, default).set_index("objective").loc["gain_mean"]
    assert (row["value"], row["default"], row["mean"], row["p"]) == (3.0, 2.0, 1.0, judged[0].p)


def test_settings_are_ranked_by_gain_and_equals_share_a_rank():
    gains = {"defaults": 1.0, "conservative": 3.0, "balanced": 3.0, "responsive": 0.0}
    by_seed = {
        name: {"gain_mean": np.array([g, g + 1]), "tax": np.zeros(2), "amendments": np.ones(2)}
        for name, g in gains.items()
    }
    rows = [dict(zip(ROBUSTNESS, row, strict=True)) for row in robustness_rows("x", "", by_seed)]
    assert [row["rank"] for row in rows] == [3, 1, 1, 4]
    assert [row["difference"] for row in rows] == [0.0, 2.0, 2.0, -1.0]
