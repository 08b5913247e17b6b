"""Tests of `elfmem_sim.streams`: a draw belongs to what it is for, not to when it is made."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elfmem_sim.streams import generator

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True, database=None)

IDENTITY = st.lists(st.integers(0, 10**6) | st.text("abc/-_.0123456789", max_size=12), max_size=5)


def test_draws_are_pinned():
    assert generator("proposer").random().hex() == "0x1.6cd8d7e7eb990p-5"
    acceptance = generator("acceptance", "adr-0004/stable", "review", 7, 29, 3)
    assert acceptance.random(2).tolist() == [0.35070653189446155, 0.017266920925712137]


def test_normal_draws_are_pinned():
    # Noise is drawn from the normal distribution, whose method numpy could change apart.
    draws = generator("proposer", "adr-0004/stable", 7).normal(size=2)
    assert [draw.hex() for draw in draws.tolist()] == [
        "-0x1.95738e25862fep+0",
        "0x1.5decac70b4c07p+0",
    ]


@PROPERTY
@given(purpose=st.sampled_from(["proposer", "acceptance", "reversion"]), identity=IDENTITY)
def test_equal_arguments_give_equal_draws(purpose, identity):
    first, second = (generator(purpose, *identity).random(4).tobytes() for _ in range(2))
    assert first == second


def test_draws_do_not_depend_on_the_order_in_which_they_are_made():
    keys = list(itertools.product(("acceptance", "reversion"), (1, 2), range(5)))
    forwards = {key: generator(*key).random() for key in keys}
    generator("bootstrap").random(100)
    np.random.default_rng(0).random(100)
    backwards = {key: generator(*key).random() for key in reversed(keys)}
    assert backwards == forwards


def test_every_call_starts_afresh():
    generator("proposer", 1).random(10)
    assert generator("proposer", 1).random() == generator("proposer", 1).random()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("acceptance", "s", "a", 1, 29, 3), ("reversion", "s", "a", 1, 29, 3)),
        (("acceptance", "s", "a", 1, 29, 3), ("acceptance", "t", "a", 1, 29, 3)),
        (("acceptance", "s", "a", 1, 29, 3), ("acceptance", "s", "b", 1, 29, 3)),
        (("acceptance", "s", "a", 1, 29, 3), ("acceptance", "s", "a", 2, 29, 3)),
        (("acceptance", "s", "a", 1, 29, 3), ("acceptance", "s", "a", 1, 28, 3)),
        (("acceptance", "s", "a", 1, 29, 3), ("acceptance", "s", "a", 1, 29, 4)),
        (("acceptance", 1, 23), ("acceptance", 12, 3)),
        (("acceptance", 1, 2), ("acceptance", 2, 1)),
        (("acceptance", ""), ("acceptance",)),
        (("acceptance", -1), ("acceptance", 1)),
    ],
)
def test_what_differs_in_anything_draws_apart(one, other):
    assert generator(*one).random(2).tolist() != generator(*other).random(2).tolist()


def test_neighbouring_identities_are_uncorrelated():
    draws = np.array([[generator("acceptance", s, b).random() for b in (0, 1)] for s in range(400)])
    assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / np.sqrt(400)
    assert abs(draws.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 800)
