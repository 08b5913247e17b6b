"""Directions against plain Python on ``random.Random``."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.kernel.rng import new_stream, reseed, reserve
from elfmem_sim.kernel.topic import blend, normalise, perturb, random_topic, rotate

SEEDS = st.integers(0, 2**63 - 1)
DIMENSIONS = st.integers(2, 65)
SIGMAS = st.sampled_from([0.0, 0.005, 0.15, 1.5, 20.0])
CLOSE = {"rtol": 0, "atol": 1e-14}


def stream_for(seed: int, dimension: int):
    stream = new_stream(8 * (dimension + 1))
    reseed(stream, seed)
    reserve(stream, 4 * (dimension + 1))
    return stream


def unit(dimension: int, seed: int = 5) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(size=dimension)
    return vector / np.linalg.norm(vector)


def gaussians(reference: random.Random, dimension: int, sigma: float = 1.0) -> np.ndarray:
    return np.array([reference.gauss(0.0, sigma) for _ in range(dimension)])


def scaled(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@given(DIMENSIONS, st.floats(1e-100, 1e100))
def test_normalise_gives_length_one_and_keeps_the_direction(dimension, length):
    vector = unit(dimension) * length
    normalise(vector)
    np.testing.assert_allclose(vector, unit(dimension), **CLOSE)


def test_normalise_leaves_a_zero_vector_alone():
    vector = np.zeros(4)
    normalise(vector)
    assert vector.tolist() == [0.0] * 4


@given(SEEDS, DIMENSIONS)
def test_random_topic_is_successive_gaussians_normalised(seed, dimension):
    out = np.empty(dimension)
    random_topic(stream_for(seed, dimension), out)
    np.testing.assert_allclose(out, scaled(gaussians(random.Random(seed), dimension)), **CLOSE)


@given(SEEDS, DIMENSIONS, SIGMAS)
def test_perturb_is_the_topic_plus_gaussians_normalised(seed, dimension, sigma):
    stream, reference = stream_for(seed, dimension), random.Random(seed)
    topic, out = unit(dimension), np.empty(dimension)
    for _ in range(3):  # three in a row carry the cached Gaussian over when the dimension is odd
        perturb(topic, stream, sigma, out)
        noise = gaussians(reference, dimension, sigma)
        np.testing.assert_allclose(out, scaled(topic + noise), **CLOSE)


def test_perturb_without_spread_takes_its_draws_all_the_same():
    stream, reference = stream_for(1, 8), random.Random(1)
    out = np.empty(8)
    perturb(unit(8), stream, 0.0, out)
    gaussians(reference, 8)
    perturb(unit(8), stream, 1.0, out)
    np.testing.assert_allclose(out, scaled(unit(8) + gaussians(reference, 8)), **CLOSE)


def test_perturb_leaves_its_topic_alone():
    topic = unit(8)
    perturb(topic, stream_for(1, 8), 1.0, np.empty(8))
    assert topic.tolist() == unit(8).tolist()


@given(SEEDS, DIMENSIONS, st.floats(0.0, 1.0), st.floats(0.1, 1.0))
def test_blend_mixes_old_and_strongly_perturbed_self(seed, dimension, weight_old, weight_new):
    topic, out = unit(dimension), np.empty(dimension)
    blend(topic, stream_for(seed, dimension), 1.5, weight_old, weight_new, out)
    new = scaled(topic + gaussians(random.Random(seed), dimension, 1.5))
    mixed = weight_old * topic + weight_new * new
    if np.linalg.norm(mixed) > 1e-3:
        np.testing.assert_allclose(out, scaled(mixed), rtol=0, atol=1e-11)


@given(SEEDS, DIMENSIONS, st.floats(0.01, 180.0))
def test_rotate_turns_by_exactly_the_angle(seed, dimension, degrees):
    angle = math.radians(degrees)
    topic, out = unit(dimension), np.empty(dimension)
    rotate(topic, stream_for(seed, dimension), math.cos(angle), math.sin(angle), out)
    # Half the chord: exact at every angle, where an arc cosine is blind near 0 and 180 degrees.
    turned = 2.0 * math.atan2(np.linalg.norm(out - topic), np.linalg.norm(out + topic))
    assert turned == pytest.approx(angle, rel=0, abs=1e-9)


@given(SEEDS, DIMENSIONS)
def test_rotate_turns_towards_the_orthogonal_part_of_the_gaussians(seed, dimension):
    topic, out = unit(dimension), np.empty(dimension)
    rotate(topic, stream_for(seed, dimension), 0.0, 1.0, out)
    noise = gaussians(random.Random(seed), dimension)
    orthogonal = noise - (noise @ topic) * topic
    if np.linalg.norm(orthogonal) > 1e-3:
        np.testing.assert_allclose(out, scaled(orthogonal), rtol=0, atol=1e-10)


@given(SEEDS, DIMENSIONS, SIGMAS)
def test_every_direction_has_length_one(seed, dimension, sigma):
    stream, topic = stream_for(seed, dimension), unit(dimension)
    out = np.empty((4, dimension))
    random_topic(stream, out[0])
    perturb(topic, stream, sigma, out[1])
    blend(topic, stream, 1.5, 0.5, 0.866, out[2])
    rotate(topic, stream, 0.5, math.sqrt(0.75), out[3])
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1.0, **CLOSE)


def test_rotations_of_one_topic_scatter_around_the_whole_cone():
    stream, topic, out = stream_for(0, 3), np.array([0.0, 0.0, 1.0]), np.empty(3)
    quadrants = set()
    for _ in range(60):
        reserve(stream, 4)
        rotate(topic, stream, 0.5, math.sqrt(0.75), out)
        quadrants.add((out[0] > 0, out[1] > 0))
    assert len(quadrants) == 4
