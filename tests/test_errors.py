"""Tests of `elfmem_sim.errors`: what a message says, and that it survives a worker's boundary."""

import copy
import pickle

import pytest

from elfmem_sim.errors import InvariantError, UserError


def violation():
    return InvariantError(
        "a review changes nothing",
        scenario="adr-0004/stable",
        arm="review",
        seed=7,
        day=29,
        detail="rows were written",
    )


def test_a_user_error_says_what_was_given_expected_and_to_be_done_and_where():
    error = UserError(1.5, "at most 1", "Choose less.", "review.config.drift_threshold")
    assert str(error) == (
        "review.config.drift_threshold: got 1.5; expected at most 1. Choose less."
    )
    assert (error.value, error.expected, error.remedy, error.where) == (
        1.5,
        "at most 1",
        "Choose less.",
        "review.config.drift_threshold",
    )


def test_a_user_error_without_a_place_names_none():
    assert str(UserError("x", "y", "Do z.")) == "got 'x'; expected y. Do z."


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("where", ["review.config.top_n", ""])
def test_a_user_error_survives_pickling(where, protocol):
    error = UserError(2.5, "a whole number", "Round it.", where)
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is UserError
    assert (back.__dict__, str(back)) == (error.__dict__, str(error))


def test_an_invariant_error_says_what_was_promised_and_how_to_replay_the_breach():
    assert str(violation()) == (
        "ADR 0004 promises that a review changes nothing; broken in adr-0004/stable, arm review, "
        "seed 7, day 29: rows were written. Replay it: elfmem-sim replay adr-0004/stable "
        "--arm review --seed 7"
    )
    assert violation().promise == "a review changes nothing"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_invariant_error_survives_pickling(protocol):
    back = pickle.loads(pickle.dumps(violation(), protocol))
    assert type(back) is InvariantError
    assert (back.promise, str(back)) == (violation().promise, str(violation()))


def test_an_invariant_error_survives_pickling_twice():
    once = pickle.loads(pickle.dumps(violation()))
    assert str(pickle.loads(pickle.dumps(once))) == str(violation())


def test_an_invariant_error_survives_copying():
    assert str(copy.copy(violation())) == str(violation())


@pytest.mark.parametrize("error", [UserError("x", "y", "z"), violation()])
def test_no_error_is_mistaken_for_one_of_pythons_own(error):
    assert not isinstance(error, (ValueError, RuntimeError, AssertionError, OSError))
