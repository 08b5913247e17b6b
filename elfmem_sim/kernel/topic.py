"""Random directions: where blocks, queries and the self point.

Every function here needs ``dimension + 1`` draws reserved on its stream.
"""

import math

from elfmem_sim.kernel._compile import borrowing
from elfmem_sim.kernel.rng import Stream, fill_gauss
from elfmem_sim.kernel.state import Floats


@borrowing
def normalise(vector: Floats) -> None:
    """Scale ``vector`` to unit length in place; a zero vector stays zero."""
    total = 0.0
    for j in range(vector.shape[0]):
        total += vector[j] * vector[j]
    norm = math.sqrt(total)
    if norm > 0.0:
        for j in range(vector.shape[0]):
            vector[j] /= norm


@borrowing
def copy(source: Floats, target: Floats) -> None:
    """Copy a vector; a slice assignment would take seconds longer to compile."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@borrowing
def random_topic(stream: Stream, out: Floats) -> None:
    """Write a uniformly random direction into ``out``."""
    fill_gauss(stream, out)
    normalise(out)


@borrowing
def perturb(topic: Floats, stream: Stream, sigma: float, out: Floats) -> None:
    """Write ``topic`` plus Gaussian noise of ``sigma`` per component, normalised, into ``out``."""
    fill_gauss(stream, out)
    for j in range(out.shape[0]):
        out[j] = topic[j] + out[j] * sigma
    normalise(out)


@borrowing
def blend(
    topic: Floats,
    stream: Stream,
    spread: float,
    weight_old: float,
    weight_new: float,
    out: Floats,
) -> None:
    """The published regime step: mix ``topic`` with a strongly perturbed copy of itself.

    The new direction is not orthogonal to the old one, so weights of .5 and .866 do not make a
    rotation by 60 degrees; :func:`rotate` does.
    """
    perturb(topic, stream, spread, out)
    for j in range(out.shape[0]):
        out[j] = weight_old * topic[j] + weight_new * out[j]
    normalise(out)


@borrowing
def rotate(topic: Floats, stream: Stream, cosine: float, sine: float, out: Floats) -> None:
    """Turn ``topic`` by exactly the given angle towards a uniformly random orthogonal direction."""
    fill_gauss(stream, out)
    along = 0.0
    for j in range(out.shape[0]):
        along += out[j] * topic[j]
    for j in range(out.shape[0]):
        out[j] -= along * topic[j]
    normalise(out)
    for j in range(out.shape[0]):
        out[j] = cosine * topic[j] + sine * out[j]
    normalise(out)
