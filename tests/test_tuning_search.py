"""Tests of `elfmem_sim.tuning.search`, on costs whose best settings are known."""

import numpy as np
import pytest

from elfmem_sim.tuning.search import search

NAMES = ["a", "b", "c"]


def two_targets(points):
    """Squared distances to two points; every best setting lies on the line between them."""
    return np.stack([((points - target) ** 2).sum(axis=1) for target in (0.2, 0.8)], axis=1)


def run(evaluate=two_targets, *, identity=("test",), trials=60, **options):
    return search(
        evaluate, NAMES, objectives=2, trials=trials, population=12, identity=identity, **options
    )


def test_later_generations_lie_nearer_to_the_best_settings():
    points, _ = run(trials=360)
    off_the_line = np.linalg.norm(points - points.mean(axis=1, keepdims=True), axis=1)
    assert off_the_line[-60:].mean() < 0.85 * off_the_line[:60].mean()


def test_without_a_goal_nothing_is_preferred():
    points, _ = run(lambda p: np.zeros((len(p), 2)), trials=240)
    assert points[-120:].mean() == pytest.approx(0.5, abs=0.12)


def test_the_same_search_gives_the_same_points():
    assert (run()[0] == run()[0]).all()


def test_another_identity_gives_other_points():
    assert not (run()[0] == run(identity=("other",))[0]).any()


def test_costs_belong_to_their_points():
    points, cost = run()
    assert (cost == two_targets(points)).all()


def test_points_lie_in_the_cube():
    points, _ = run()
    assert points.shape == (60, 3)
    assert ((points >= 0.0) & (points <= 1.0)).all()


def test_a_start_comes_first():
    points, _ = run(start=np.array([0.1, 0.2, 0.3]))
    assert points[0].tolist() == [0.1, 0.2, 0.3]


def test_a_generation_is_evaluated_at_once():
    sizes = []

    def evaluate(points):
        sizes.append(len(points))
        return two_targets(points)

    run(evaluate, trials=30)
    assert sizes == [12, 12, 6]


def test_the_first_trials_do_not_depend_on_how_many_follow():
    assert (run(trials=36)[0] == run(trials=60)[0][:36]).all()
