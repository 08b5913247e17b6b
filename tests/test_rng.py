"""The compiled stream against CPython's own ``random.Random``."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.kernel.rng import fill_gauss, new_stream, reseed, reserve, uniform

ROOM = 4096
LARGEST_SEED = 2**63 - 1
NOTABLE_SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53, 2**62, LARGEST_SEED]
SEEDS = st.one_of(st.sampled_from(NOTABLE_SEEDS), st.integers(0, LARGEST_SEED))

UNIFORM = 0
# A request: this many successive Gaussians, or with 0 one uniform draw.
REQUESTS = st.lists(st.integers(0, 9), min_size=1, max_size=60)


def seeded(seed: int, room: int = ROOM):
    stream = new_stream(room)
    reseed(stream, seed)
    return stream


def drawn(stream, request: int) -> list[float]:
    reserve(stream, request + 1)
    if request == UNIFORM:
        return [uniform(stream)]
    out = np.empty(request)
    fill_gauss(stream, out)
    return out.tolist()


def expected(reference: random.Random, request: int) -> list[float]:
    if request == UNIFORM:
        return [reference.random()]
    return [reference.gauss(0.0, 1.0) for _ in range(request)]


@pytest.mark.parametrize("seed", NOTABLE_SEEDS)
def test_state_after_seeding_is_cpythons(seed):
    *words, position = random.Random(seed).getstate()[1]
    stream = seeded(seed)
    assert stream.words.tolist() == words
    assert position == len(words)
    assert stream.cursor.tolist() == [0, 0]


@pytest.mark.parametrize("seed", NOTABLE_SEEDS)
def test_uniform_is_cpythons_over_many_refills(seed):
    stream, reference = seeded(seed), random.Random(seed)
    for _ in range(2000):
        reserve(stream, 1)
        assert uniform(stream) == reference.random()


@given(SEEDS)
def test_uniform_is_cpythons_at_any_seed(seed):
    stream, reference = seeded(seed), random.Random(seed)
    reserve(stream, 400)
    assert [uniform(stream) for _ in range(400)] == [reference.random() for _ in range(400)]


@given(SEEDS, REQUESTS)
def test_gauss_and_uniform_interleave_as_in_cpython(seed, requests):
    stream, reference = seeded(seed), random.Random(seed)
    for request in requests:
        np.testing.assert_allclose(
            drawn(stream, request), expected(reference, request), rtol=1e-14, atol=1e-14
        )


@given(SEEDS, st.lists(st.integers(1, 9), min_size=2, max_size=40))
def test_gauss_fills_of_any_lengths_are_one_sequence(seed, lengths):
    stream, whole = seeded(seed), seeded(seed)
    pieces = [value for length in lengths for value in drawn(stream, length)]
    reserve(whole, sum(lengths) + 1)
    at_once = np.empty(sum(lengths))
    fill_gauss(whole, at_once)
    assert pieces == at_once.tolist()


@given(st.integers(0, 9))
def test_odd_number_of_gaussians_leaves_one_cached_and_even_none(length):
    stream = seeded(7)
    drawn(stream, length or UNIFORM)
    assert stream.spare[1] == length % 2


def test_cached_gaussian_costs_no_draw_from_the_generator():
    stream = seeded(7)
    drawn(stream, 1)
    reserve(stream, 2)
    before = stream.cursor[0]
    fill_gauss(stream, np.empty(1))
    assert stream.cursor[0] == before


def test_empty_fill_keeps_the_cached_gaussian():
    stream, reference = seeded(7), random.Random(7)
    assert drawn(stream, 1) == pytest.approx(expected(reference, 1))
    fill_gauss(stream, np.empty(0))
    assert drawn(stream, 1) == pytest.approx(expected(reference, 1))


@given(SEEDS, st.lists(st.integers(0, ROOM // 2), min_size=1, max_size=30))
def test_reserving_ahead_changes_no_draw(seed, sizes):
    stream, reference = seeded(seed), random.Random(seed)
    for size in sizes:
        reserve(stream, size)
        for _ in range(min(size, 1 + size // 3)):
            assert uniform(stream) == reference.random()


@pytest.mark.parametrize("draws", [1, 311, 312, 313, 624, 1000, 5000])
def test_all_that_was_reserved_can_be_drawn(draws):
    stream, reference = seeded(3, room=2 * draws), random.Random(3)
    for _ in range(3):
        reserve(stream, draws)
        assert stream.cursor[1] - stream.cursor[0] >= 2 * draws
        assert [uniform(stream) for _ in range(draws)] == [reference.random() for _ in range(draws)]


@given(SEEDS, SEEDS, st.integers(0, 9))
def test_reseeding_forgets_everything_before(first, second, request):
    stream = seeded(first)
    drawn(stream, request)
    reseed(stream, second)
    fresh = seeded(second)
    for size in (5, UNIFORM, 4):
        assert drawn(stream, size) == drawn(fresh, size)


def test_different_seeds_give_different_streams():
    firsts = {drawn(seeded(seed), UNIFORM)[0] for seed in [*NOTABLE_SEEDS, *range(2, 100)]}
    assert len(firsts) == len(NOTABLE_SEEDS) + 98


def test_no_more_can_be_reserved_than_there_is_room_for():
    stream = new_stream(20)
    reseed(stream, 0)
    reserve(stream, 10)
    with pytest.raises(ValueError, match="room"):
        reserve(stream, 11)
