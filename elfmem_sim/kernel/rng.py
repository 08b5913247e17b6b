"""CPython's ``random.Random`` as compiled functions, draw for draw.

The published simulations draw everything from one ``random.Random(seed)``, so an exact replay needs
the same Mersenne Twister, the same 53-bit ``random()`` and the same cached-pair ``gauss()``.
Sources: Matsumoto and Nishimura (1998) for MT19937 and ``init_by_array``; CPython's documented
behaviour of ``random`` for the rest.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.kernel._compile import borrowing, compiled

_N = 624
_M = 397


class Stream(NamedTuple):
    """One random stream.

    Draws come out of a buffer that :func:`reserve` fills ahead: a check for an empty generator
    inside every draw would cost ten times the draw itself.

    Attributes:
        words: The generator's state, ``uint32[624]``.
        buffer: Tempered words not yet drawn, ``uint32[624 + room]``.
        cursor: ``int64[2]``: index of the next word in ``buffer``, and the end of the filled part.
        spare: ``float64[2]``: the cached second Gaussian, and 1.0 if there is one (else 0.0).
    """

    words: NDArray[np.uint32]
    buffer: NDArray[np.uint32]
    cursor: NDArray[np.int64]
    spare: NDArray[np.float64]


@compiled
def new_stream(room: int) -> Stream:
    """Return an unseeded stream of which up to ``room`` words can be reserved at once."""
    return Stream(
        np.zeros(_N, np.uint32),
        np.zeros(_N + room, np.uint32),
        np.zeros(2, np.int64),
        np.zeros(2, np.float64),
    )


@borrowing
def reseed(stream: Stream, seed: int) -> None:
    """Put ``stream`` into the state of ``random.Random(seed)``.

    Args:
        stream: The stream to overwrite.
        seed: A non-negative integer below 2**63 (CPython takes the absolute value of the rest).
    """
    words = stream.words
    words[0] = np.uint32(19650218)
    for i in range(1, _N):
        prev = np.uint64(words[i - 1])
        mixed = np.uint64(1812433253) * (prev ^ (prev >> np.uint64(30))) + np.uint64(i)
        words[i] = np.uint32(mixed & np.uint64(0xFFFFFFFF))
    low = np.uint64(seed) & np.uint64(0xFFFFFFFF)
    high = np.uint64(seed) >> np.uint64(32)
    key_length = 2 if high > 0 else 1
    i = 1
    j = 0
    for _ in range(_N):
        prev = np.uint64(words[i - 1])
        key = low if j == 0 else high
        mixed = (np.uint64(words[i]) ^ ((prev ^ (prev >> np.uint64(30))) * np.uint64(1664525))) + (
            key + np.uint64(j)
        )
        words[i] = np.uint32(mixed & np.uint64(0xFFFFFFFF))
        i += 1
        j += 1
        if i >= _N:
            words[0] = words[_N - 1]
            i = 1
        if j >= key_length:
            j = 0
    for _ in range(_N - 1):
        prev = np.uint64(words[i - 1])
        mixed = (
            np.uint64(words[i]) ^ ((prev ^ (prev >> np.uint64(30))) * np.uint64(1566083941))
        ) - np.uint64(i)
        words[i] = np.uint32(mixed & np.uint64(0xFFFFFFFF))
        i += 1
        if i >= _N:
            words[0] = words[_N - 1]
            i = 1
    words[0] = np.uint32(0x80000000)
    stream.cursor[:] = 0
    stream.spare[1] = 0.0


@borrowing
def _twist(a: np.uint32, b: np.uint32) -> np.uint32:
    mixed = (a & np.uint32(0x80000000)) | (b & np.uint32(0x7FFFFFFF))
    return np.uint32((mixed >> np.uint32(1)) ^ (np.uint32(0x9908B0DF) * (mixed & np.uint32(1))))


@borrowing
def _append_words(words: NDArray[np.uint32], buffer: NDArray[np.uint32], end: int) -> None:
    """Advance the generator by 624 words and append them, tempered, at ``buffer[end]``."""
    for i in range(_N - _M):
        words[i] = words[i + _M] ^ _twist(words[i], words[i + 1])
    for i in range(_N - _M, _N - 1):
        words[i] = words[i + _M - _N] ^ _twist(words[i], words[i + 1])
    words[_N - 1] = words[_M - 1] ^ _twist(words[_N - 1], words[0])
    for i in range(_N):
        y = words[i]
        y ^= y >> np.uint32(11)
        y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
        y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
        y ^= y >> np.uint32(18)
        buffer[end + i] = y


@borrowing
def reserve(stream: Stream, draws: int) -> None:
    """Make sure that ``draws`` calls of :func:`uniform` can follow.

    Args:
        stream: The stream.
        draws: How many; at most half the ``room`` that the stream was made with.

    Raises:
        ValueError: If they are more, since the buffer cannot hold them.
    """
    if 2 * draws > stream.buffer.shape[0] - _N:
        raise ValueError("more draws reserved than the stream has room for")
    cursor = stream.cursor
    while cursor[1] - cursor[0] < 2 * draws:
        left = cursor[1] - cursor[0]
        for i in range(left):
            stream.buffer[i] = stream.buffer[cursor[0] + i]
        _append_words(stream.words, stream.buffer, left)
        cursor[0] = 0
        cursor[1] = left + _N


@borrowing
def uniform(stream: Stream) -> float:
    """Draw ``random.random()``, 53 bits in [0, 1), from the words reserved."""
    at = stream.cursor[0]
    stream.cursor[0] = at + 2
    a = stream.buffer[at] >> np.uint32(5)
    b = stream.buffer[at + 1] >> np.uint32(6)
    return (float(a) * 67108864.0 + float(b)) * (1.0 / 9007199254740992.0)


@borrowing
def fill_gauss(stream: Stream, out: NDArray[np.float64]) -> None:
    """Fill ``out`` with successive draws of ``random.gauss(0, 1)``, cached pair included.

    Args:
        stream: The stream, with ``len(out) + 1`` draws reserved.
        out: Receives the draws, ``float64[n]``.
    """
    n = out.shape[0]
    j = 0
    if stream.spare[1] != 0.0 and n > 0:
        stream.spare[1] = 0.0
        out[0] = stream.spare[0]
        j = 1
    while j < n:
        angle = uniform(stream) * (2.0 * math.pi)
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream)))
        out[j] = math.cos(angle) * radius
        if j + 1 < n:
            out[j + 1] = math.sin(angle) * radius
        else:
            stream.spare[0] = math.sin(angle) * radius
            stream.spare[1] = 1.0
        j += 2


@borrowing
def below(stream: Stream, n: int) -> int:
    """Draw CPython's ``_randbelow(n)``, the source of ``randint`` and ``sample``.

    Reserves what it needs itself, since it draws until a value fits.

    Args:
        stream: The stream.
        n: Exclusive upper bound, from 1 to 2**32 - 1.
    """
    bits = 0
    while n >> bits:
        bits += 1
    while True:
        reserve(stream, 1)
        at = stream.cursor[0]
        stream.cursor[0] = at + 1
        value = np.int64(stream.buffer[at]) >> (32 - bits)
        if value < n:
            return int(value)


@compiled
def sample(stream: Stream, n: int, out: NDArray[np.int64]) -> None:
    """Draw ``random.sample(range(n), len(out))``.

    Args:
        stream: The stream.
        n: Size of the population, at least ``len(out)``.
        out: Receives the sample, ``int64[k]``.
    """
    k = out.shape[0]
    # CPython keeps a pool of the whole population while that is smaller than a set of the chosen.
    set_size = 21
    if k > 5:
        power = 1
        while power < k * 3:
            power *= 4
        set_size += power
    if n <= set_size:
        pool = np.arange(n)
        for i in range(k):
            j = below(stream, n - i)
            out[i] = pool[j]
            pool[j] = pool[n - i - 1]
        return
    for i in range(k):
        j = below(stream, n)
        while np.any(out[:i] == j):
            j = below(stream, n)
        out[i] = j
