"""Which inputs of a function matter: sample, evaluate, analyse, as three separate steps.

Everything happens on the unit cube, and a function is any table of its values.

References:
    Morris (1991), Factorial sampling plans for preliminary computational experiments,
        Technometrics 33:161 (elementary effects).
    Campolongo, Cariboni and Saltelli (2007), An effective screening design for sensitivity
        analysis of large models, Environ. Model. Softw. 22:1509 (the mean of absolute effects).
    Sobol' (2001), Global sensitivity indices for nonlinear mathematical models and their Monte
        Carlo estimates, Math. Comput. Simul. 55:271.
    Saltelli et al. (2010), Variance based sensitivity analysis of model output, Comput. Phys.
        Commun. 181:259 (the estimators).
    Owen (1998), Scrambling Sobol' and Niederreiter-Xing points, J. Complexity 14:466.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# SciPy ships no type information; `unused-ignore` keeps this valid where stubs are installed.
from scipy import stats  # type: ignore[import-untyped, unused-ignore]

Array = NDArray[np.float64]

LEVELS = 4
"""Levels of Morris's grid: 0, 1/3, 2/3 and 1; a step is 2/3, as he advises."""

_RESAMPLES = 1000
_ROUNDING = 1e-12  # of the largest value: less spread than that is rounding


@dataclass(frozen=True)
class Effects:
    """Morris's elementary effects, each for a step across the whole range.

    Attributes:
        mean_absolute: Campolongo's mu*, ``float64[d]``: how much an input matters.
        mcse: Monte-Carlo standard error of it, ``float64[d]``.
        mean: Morris's mu, ``float64[d]``: in which direction.
        spread: Morris's sigma, ``float64[d]``: how much that depends on the other inputs.
    """

    mean_absolute: Array
    mcse: Array
    mean: Array
    spread: Array


@dataclass(frozen=True)
class Indices:
    """Sobol' indices with bootstrap intervals, each ``float64[d]``.

    Attributes:
        first: Share of the variance that an input explains alone.
        first_low: Lower end of its interval.
        first_high: Upper end.
        total: Share of the variance in which an input takes any part.
        total_low: Lower end of its interval.
        total_high: Upper end.
    """

    first: Array
    first_low: Array
    first_high: Array
    total: Array
    total_low: Array
    total_high: Array


def morris_design(d: int, trajectories: int, rng: np.random.Generator) -> Array:
    """Draw Morris's trajectories: each starts somewhere and moves every input once.

    Args:
        d: Number of inputs.
        trajectories: Number of trajectories, at least 2.
        rng: Source of the draws.

    Returns:
        Points, ``float64[trajectories, d + 1, d]``, on a grid of ``LEVELS`` levels.
    """
    step = LEVELS / (2 * (LEVELS - 1))
    lower = np.arange(LEVELS // 2) / (LEVELS - 1)  # levels from which a step stays inside
    points = np.empty((trajectories, d + 1, d))
    for path in points:
        start = rng.choice(lower, d)
        up = rng.random(d) < 0.5
        path[0] = np.where(up, start, start + step)
        for at, i in enumerate(rng.permutation(d), start=1):
            path[at] = path[at - 1]
            path[at, i] = start[i] + step if up[i] else start[i]
    return points


def morris_effects(points: Array, values: Array) -> Effects:
    """Analyse a function's values on Morris's trajectories.

    Args:
        points: As :func:`morris_design` returns them.
        values: ``float64[trajectories, d + 1]``.

    Raises:
        ValueError: If the shapes do not match or there are fewer than two trajectories.
    """
    r, n, d = points.shape
    if values.shape != (r, n) or n != d + 1 or r < 2:
        raise ValueError(
            f"points have shape {points.shape} and values {values.shape}; expected (r, d + 1, d) "
            "and (r, d + 1) with r of at least 2"
        )
    moves = np.diff(points, axis=1)
    which = np.argmax(np.abs(moves), axis=2)
    step = np.take_along_axis(moves, which[:, :, None], axis=2)[:, :, 0]
    effects = np.empty((r, d))
    np.put_along_axis(effects, which, np.diff(values, axis=1) / step, axis=1)
    size = np.abs(effects)
    return Effects(
        mean_absolute=size.mean(axis=0),
        mcse=size.std(axis=0, ddof=1) / np.sqrt(r),
        mean=effects.mean(axis=0),
        spread=effects.std(axis=0, ddof=1),
    )


def sobol_design(d: int, base: int, rng: np.random.Generator) -> Array:
    """Draw two scrambled Sobol' samples and the mixtures of both that the estimators need.

    Args:
        d: Number of inputs.
        base: Points per sample, a power of two.
        rng: Source of the scrambling.

    Returns:
        Points, ``float64[d + 2, base, d]``: sample A, sample B, and for each input A with that
        input's column taken from B.

    Raises:
        ValueError: If ``base`` is not a power of two.
    """
    if base < 2 or base & (base - 1):
        raise ValueError(f"base is {base}; expected a power of two, at least 2")
    both = stats.qmc.Sobol(2 * d, scramble=True, rng=rng).random(base)
    a, b = both[:, :d], both[:, d:]
    mixed = np.repeat(a[None], d, axis=0)
    for i in range(d):
        mixed[i, :, i] = b[:, i]
    return np.concatenate((a[None], b[None], mixed))


def is_constant(values: Array) -> bool:
    """Whether a function has, but for rounding, the same value everywhere."""
    return float(np.ptp(values)) <= _ROUNDING * max(1.0, float(np.abs(values).max()))


def sobol_indices(values: Array, rng: np.random.Generator, confidence: float = 0.95) -> Indices:
    """Estimate first- and total-order indices and their bootstrap intervals.

    The estimates are SciPy's (Saltelli et al. 2010). The intervals are percentiles of the same
    estimators over resampled rows of the design, the rows being what varies between designs.
    Resamples without variance say nothing and are left out; the interval is infinite if all are.

    Args:
        values: ``float64[d + 2, base]``, the function on :func:`sobol_design`'s points.
        rng: Source of the resamples.
        confidence: Coverage of the intervals.

    Raises:
        ValueError: If the function is constant, as nothing can then be shared out.
    """
    if is_constant(values):
        raise ValueError("the function is constant over the design; it has no indices")
    base = values.shape[1]
    found = stats.sobol_indices(
        func={
            "f_A": values[None, 0].copy(),
            "f_B": values[None, 1].copy(),
            "f_AB": values[2:, None, :].copy(),
        },
        n=base,
    )
    first, total = (np.ravel(order) for order in (found.first_order, found.total_order))
    resampled = np.array(
        [_saltelli(values[:, rng.integers(base, size=base)]) for _ in range(_RESAMPLES)]
    )
    resampled = resampled[~np.isnan(resampled).any(axis=(1, 2))]
    if not len(resampled):
        unbounded = np.full(len(first), np.inf)
        return Indices(first, -unbounded, unbounded, total, -unbounded, unbounded)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(resampled, (tail, 1.0 - tail), axis=0)
    return Indices(first, low[0], high[0], total, low[1], high[1])


def _saltelli(values: Array) -> Array:
    """Return first and total indices, ``float64[2, d]``; NaN without variance."""
    centred = values - values[:2].mean()
    a, b, mixed = centred[0], centred[1], centred[2:]
    variance = centred[:2].var()
    if variance == 0.0:
        return np.full((2, len(mixed)), np.nan)
    first = (b * (mixed - a)).mean(axis=1)
    total = 0.5 * ((a - mixed) ** 2).mean(axis=1)
    return np.array([first / variance, total / variance])
