"""Estimation and judgement for Monte-Carlo studies: every number has an error.

All functions are pure. A "value" is one number per seed, in any unit (percentage points, a ratio,
seconds), and every mean, standard error, interval end and margin is in that same unit.

Arms are paired by seed, so there is no unpaired (Welch) test here: on paired data it is a bug.

References:
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
        the binomial, Biometrika 26:404 (interval of a share).
    Efron (1987), Better bootstrap confidence intervals, JASA 82:171 (BCa).
    Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6:65.
    Morris, White and Crowther (2019), Using simulation studies to evaluate statistical methods,
        Statistics in Medicine 38:2074 (Monte-Carlo standard error, MCSE).
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach,
        J. Pharmacokinet. Biopharm. 15:657 (TOST).
    Student (1908), The probable error of a mean, Biometrika 6:1 (t interval and t test).
"""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

# SciPy ships no type information; `unused-ignore` keeps this valid where stubs are installed.
from scipy import special, stats  # type: ignore[import-untyped, unused-ignore]

RangeVerdict = Literal["REPRODUCED", "CONSISTENT", "ABOVE", "BELOW", "INCONCLUSIVE"]

# The bootstrap works on blocks of at most this many doubles (8 MB) at a time.
_BOOTSTRAP_BLOCK = 1_000_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its Monte-Carlo error, all in the unit of the values.

    Attributes:
        mean: The sample mean.
        mcse: Monte-Carlo standard error of the mean; NaN when n is 1.
        low: Lower end of the interval; -inf when n is 1.
        high: Upper end of the interval; +inf when n is 1.
        n: How many values the mean is taken over.
    """

    mean: float
    mcse: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The outcome of two one-sided tests against a margin.

    Attributes:
        margin: The equivalence margin, in the unit of the differences.
        p: The larger of the two one-sided p-values.
        low: Lower end of the 1 - 2 alpha interval of the mean difference.
        high: Upper end of the 1 - 2 alpha interval of the mean difference.
        exactly_zero: Every difference is 0.0, so there was nothing to test.
        equivalent: The mean difference is shown to lie within the margin, or is exactly zero.
        different: The 1 - 2 alpha interval lies wholly outside [-margin, margin].
    """

    margin: float
    p: float
    low: float
    high: float
    exactly_zero: bool
    equivalent: bool
    different: bool


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Estimate a mean, its MCSE and its t interval.

    The MCSE is the sample standard deviation over sqrt(n) (Morris, White and Crowther 2019); the
    interval is Student's (1908), with n - 1 degrees of freedom.

    Args:
        values: Shape (n,), one finite number per seed.
        confidence: Coverage of the interval, strictly between 0 and 1.

    Returns:
        The estimate. One value says nothing about spread, so n = 1 gives a NaN MCSE and an
        infinite interval. Identical values give an MCSE of 0 and low = high = mean.

    Raises:
        ValueError: If values is empty, not one-dimensional or not finite, or if confidence is
            out of range.
    """
    x = _finite_vector(values, "values", at_least=1)
    _check_fraction(confidence, "confidence", below=1.0)
    n = x.size
    if n == 1:
        return Estimate(float(x[0]), math.nan, -math.inf, math.inf, n)
    if x.min() == x.max():
        # Taken from the data: the computed mean and spread of equal values can be off by rounding.
        mean = float(x[0])
        return Estimate(mean, 0.0, mean, mean, n)
    mean = float(x.mean())
    mcse = float(x.std(ddof=1)) / math.sqrt(n)
    half = _t_quantile(confidence, n) * mcse
    return Estimate(mean, mcse, mean - half, mean + half, n)


def paired_difference(
    treatment: ArrayLike, control: ArrayLike, confidence: float = 0.95
) -> Estimate:
    """Estimate the mean of treatment - control, taken within seed (paired t interval).

    Args:
        treatment: Shape (n,), one finite number per seed.
        control: Shape (n,), the same seeds in the same order.
        confidence: Coverage of the interval, strictly between 0 and 1.

    Returns:
        The estimate of the mean difference, by the rules of `mean_interval`.

    Raises:
        ValueError: If the lengths differ, if either array is empty, not one-dimensional or not
            finite, or if confidence is out of range.
    """
    t = _finite_vector(treatment, "treatment", at_least=1)
    c = _finite_vector(control, "control", at_least=1)
    if t.size != c.size:
        raise ValueError(
            f"treatment has {t.size} values and control has {c.size}; "
            "expected equal lengths, paired by position"
        )
    return mean_interval(t - c, confidence)


def share_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Find the interval of a share that was seen ``successes`` times in n (Clopper, Pearson 1934).

    It is exact: it covers the true share at least as often as it says, zero and all included.

    Args:
        successes: How often it was seen, 0 to n.
        n: On how many independent occasions, at least 1.
        confidence: Coverage of the interval, strictly between 0 and 1.

    Returns:
        (low, high), 0 to 1.

    Raises:
        ValueError: If successes, n or confidence is out of range.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n}; expected 0 to n of at least 1")
    _check_fraction(confidence, "confidence", below=1.0)
    tail = (1 - confidence) / 2
    low = special.betaincinv(successes, n - successes + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def bca_interval(
    values: ArrayLike, rng: np.random.Generator, confidence: float = 0.95, resamples: int = 2000
) -> tuple[float, float]:
    """Bootstrap a mean: the BCa interval (Efron 1987), a cross-check on the t interval.

    Args:
        values: Shape (n,), one finite number per seed.
        rng: Source of the resamples; the same state gives the same interval.
        confidence: Coverage of the interval, strictly between 0 and 1.
        resamples: Number of bootstrap resamples, at least 1.

    Returns:
        (low, high) in the unit of the values. Identical values give (mean, mean). One value gives
        (-inf, inf), and so do resamples from which BCa is undefined (SciPy then warns): too few of
        them, or values that differ only by rounding.

    Raises:
        ValueError: If values is empty, not one-dimensional or not finite, if confidence is out
            of range, or if resamples is less than 1.
    """
    x = _finite_vector(values, "values", at_least=1)
    _check_fraction(confidence, "confidence", below=1.0)
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    if x.size == 1:
        return -math.inf, math.inf
    if x.min() == x.max():
        return float(x[0]), float(x[0])
    interval = stats.bootstrap(
        (x,),
        np.mean,
        n_resamples=resamples,
        # Bounds memory only: the draws, and so the interval, do not depend on it.
        batch=max(1, _BOOTSTRAP_BLOCK // x.size),
        confidence_level=confidence,
        method="BCa",
        rng=rng,
    ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    if math.isnan(low) or math.isnan(high):
        return -math.inf, math.inf
    return low, high


def equivalence(differences: ArrayLike, margin: float, alpha: float = 0.05) -> Equivalence:
    """Test that a mean difference is within a margin: two one-sided t tests (Schuirmann 1987).

    Equivalence is shown when both tests reject at alpha, which is when the 1 - 2 alpha interval
    lies inside (-margin, margin). Failing to show it is not evidence of a difference.

    Args:
        differences: Shape (n,), one finite paired difference per seed.
        margin: Equivalence margin, positive, in the unit of the differences, fixed beforehand.
        alpha: Level of each one-sided test, strictly between 0 and 0.5.

    Returns:
        The outcome. If every difference is exactly 0.0, nothing is tested: p is 0 and the
        outcome is equivalent. Otherwise one difference gives p = 1, not equivalent. The interval
        of one difference is infinite in either case.

    Raises:
        ValueError: If differences is empty, not one-dimensional or not finite, or if margin or
            alpha is out of range.
    """
    d = _finite_vector(differences, "differences", at_least=1)
    if not 0.0 < margin < math.inf:
        raise ValueError(f"margin is {margin}; expected a positive finite number")
    _check_fraction(alpha, "alpha", below=0.5)
    interval = mean_interval(d, 1 - 2 * alpha)
    exactly_zero = not d.any()
    p = 0.0 if exactly_zero else max(one_sided(d, -margin, "greater"), one_sided(d, margin, "less"))
    return Equivalence(
        margin=margin,
        p=p,
        low=interval.low,
        high=interval.high,
        exactly_zero=exactly_zero,
        equivalent=p < alpha,
        different=interval.low > margin or interval.high < -margin,
    )


def one_sided(
    differences: ArrayLike, bound: float, alternative: Literal["greater", "less"]
) -> float:
    """Test a mean difference against a bound: the one-sample, one-sided t test (Student 1908).

    Non-inferiority at a margin is `one_sided(differences, -margin, "greater")`.

    Args:
        differences: Shape (n,), one finite paired difference per seed.
        bound: The mean under the null hypothesis, in the unit of the differences.
        alternative: "greater" if the claim is that the mean is above the bound, "less" if below.

    Returns:
        The p-value. Without spread it is 0.0 if the claim holds of the one value seen and 1.0 if
        not (equality included). One difference shows nothing and gives 1.0.

    Raises:
        ValueError: If differences is empty, not one-dimensional or not finite, if bound is not
            finite, or if alternative is neither word.
    """
    d = _finite_vector(differences, "differences", at_least=1)
    if not math.isfinite(bound):
        raise ValueError(f"bound is {bound}; expected a finite number")
    if alternative not in ("greater", "less"):
        raise ValueError(f"alternative is {alternative!r}; expected 'greater' or 'less'")
    estimate = mean_interval(d)
    if estimate.n == 1:
        return 1.0
    if estimate.mcse == 0.0:
        holds = estimate.mean > bound if alternative == "greater" else estimate.mean < bound
        return 0.0 if holds else 1.0
    with warnings.catch_warnings():
        # SciPy warns of nearly identical values. A cost that is the same for every seed leaves
        # just such differences, equal but for rounding, and the p-value is then 0 or 1 as it
        # should be.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        return float(stats.ttest_1samp(d, bound, alternative=alternative).pvalue)


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for multiple comparisons by Holm's (1979) step-down procedure.

    Args:
        pvalues: Shape (m,), the p-values of one family, each in [0, 1].

    Returns:
        Shape (m,), adjusted p-values in the order given: never below the raw ones, in the same
        order of size, at most 1. Rejecting those at or below alpha holds the family-wise error
        rate at alpha.

    Raises:
        ValueError: If pvalues is empty, not one-dimensional, or holds anything outside [0, 1].
    """
    p = _finite_vector(pvalues, "pvalues", at_least=1)
    outside = p[(p < 0) | (p > 1)]
    if outside.size:
        raise ValueError(f"pvalues holds {outside[0]}; expected p-values in [0, 1]")
    order = np.argsort(p)
    scaled = p[order] * np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def judge_range(estimate: Estimate, low: float, high: float) -> RangeVerdict:
    """Judge a claimed range, such as "+9 to +14 pp", on the interval of an estimate.

    The rules are applied in this order: precision comes first, so an interval that is too wide is
    INCONCLUSIVE even where it misses the range altogether.

    Args:
        estimate: The estimate, in the unit of the range.
        low: Lower end of the claimed range.
        high: Upper end of the claimed range, above low.

    Returns:
        INCONCLUSIVE if the half-width exceeds a third of the range's length, or is not finite;
        REPRODUCED if the interval lies inside the range, ends included;
        ABOVE or BELOW if the interval is disjoint from the range;
        CONSISTENT otherwise, as interval and range overlap.

    Raises:
        ValueError: If the range is not finite or low is not below high.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"the range is [{low}, {high}]; expected finite ends with low < high")
    half = estimate.half_width
    if not math.isfinite(half) or half > (high - low) / 3:
        return "INCONCLUSIVE"
    if low <= estimate.low and estimate.high <= high:
        return "REPRODUCED"
    if estimate.low > high:
        return "ABOVE"
    if estimate.high < low:
        return "BELOW"
    return "CONSISTENT"


def two_seed_percentile(values: ArrayLike, published_mean: float) -> float:
    """Place a published two-seed mean among the means of all pairs of distinct seeds.

    Takes O(n log n) time and O(n) memory.

    Args:
        values: Shape (n,), n >= 2, one finite number per seed.
        published_mean: The published figure, in the unit of the values.

    Returns:
        The mid-rank percentile, 0 to 100: the share of the n(n-1)/2 pair means below the
        published one plus half the share equal to it.

    Raises:
        ValueError: If values has fewer than two entries, is not one-dimensional or not finite,
            or if published_mean is not finite.
    """
    x = _finite_vector(values, "values", at_least=2)
    if not math.isfinite(published_mean):
        raise ValueError(f"published_mean is {published_mean}; expected a finite number")
    below = _pairs_up_to(x, published_mean, inclusive=False)
    up_to = _pairs_up_to(x, published_mean, inclusive=True)
    return 100 * (below + up_to) / 2 / math.comb(x.size, 2)


def distinct_pairs(
    n: int, rng: np.random.Generator, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw pairs of distinct places, independently and with equal chance.

    Args:
        n: Number of places, at least 2.
        rng: Source of the pairs; the same state gives the same sample.
        size: How many pairs to draw, at least 1.

    Returns:
        First and second places, each of shape (size,), from 0 to n - 1.

    Raises:
        ValueError: If n is less than 2 or size less than 1.
    """
    if n < 2:
        raise ValueError(f"n is {n}; expected at least 2 places")
    if size < 1:
        raise ValueError(f"size is {size}; expected at least 1")
    first = rng.integers(n, size=size)
    second = rng.integers(n - 1, size=size)
    second += second >= first  # steps over the first place, so the two are distinct
    return first, second


def two_seed_probability(differences: ArrayLike, threshold: float) -> float:
    """Find how often two seeds alone would show a mean at least as extreme as a threshold.

    Takes O(n log n) time and O(n) memory.

    Args:
        differences: Shape (n,), n >= 2, one finite paired difference per seed.
        threshold: The figure to reach, in the unit of the differences.

    Returns:
        The share, 0 to 1, of the n(n-1)/2 pairs of distinct seeds whose mean is >= threshold if
        threshold >= 0, or <= threshold if it is negative.

    Raises:
        ValueError: If differences has fewer than two entries, is not one-dimensional or not
            finite, or if threshold is not finite.
    """
    d = _finite_vector(differences, "differences", at_least=2)
    if not math.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}; expected a finite number")
    pairs = math.comb(d.size, 2)
    if threshold >= 0:
        return (pairs - _pairs_up_to(d, threshold, inclusive=False)) / pairs
    return _pairs_up_to(d, threshold, inclusive=True) / pairs


def required_n(sd: float, half_width: float, confidence: float = 0.95) -> int:
    """Plan a study: the smallest n whose t interval is narrow enough.

    Args:
        sd: Standard deviation of the values between seeds, finite and not negative.
        half_width: The half-width wanted, positive and finite, in the unit of sd.
        confidence: Coverage of the interval, strictly between 0 and 1.

    Returns:
        The smallest n with t(n - 1) * sd / sqrt(n) <= half_width; at least 2, since the interval
        of one value is infinite.

    Raises:
        ValueError: If sd, half_width or confidence is out of range.
    """
    if not 0.0 <= sd < math.inf:
        raise ValueError(f"sd is {sd}; expected a finite number >= 0")
    if not 0.0 < half_width < math.inf:
        raise ValueError(f"half_width is {half_width}; expected a positive finite number")
    _check_fraction(confidence, "confidence", below=1.0)
    # The normal quantile is below every t quantile, so this start is never too large, and it is
    # only a few short of the answer.
    z = float(special.ndtri((1 + confidence) / 2))
    n = max(2, math.ceil((z * sd / half_width) ** 2))
    while _t_quantile(confidence, n) * sd / math.sqrt(n) > half_width:
        n += 1
    return n


def larger_n(n: int, half_width: float, target: float, confidence: float = 0.95) -> int:
    """Plan the next round of a study that goes on until it is precise enough.

    Args:
        n: Values so far, at least 1.
        half_width: Half-width of their t interval; infinite at n = 1.
        target: The half-width wanted, below the present one, in the same unit.
        confidence: Coverage of the interval.

    Returns:
        The n that :func:`required_n` plans from the spread seen so far, with a margin of a tenth
        because that spread is itself an estimate; twice n where none was seen; more than n always.
    """
    if not math.isfinite(half_width):
        return 2 * n
    sd = half_width * math.sqrt(n) / _t_quantile(confidence, n)
    return max(n + 1, math.ceil(1.1 * required_n(sd, target, confidence)))


def _finite_vector(values: ArrayLike, name: str, at_least: int) -> NDArray[np.float64]:
    """Return values as a finite vector of at least the given length, or raise ValueError."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"{name} has shape {x.shape}; expected one dimension")
    if x.size < at_least:
        raise ValueError(f"{name} has {x.size} entries; expected at least {at_least}")
    finite = np.isfinite(x)
    if not finite.all():
        raise ValueError(f"{name} holds {x[~finite][0]}; expected finite numbers")
    return x


def _check_fraction(value: float, name: str, below: float) -> None:
    """Raise ValueError unless value lies strictly between 0 and the given end."""
    if not 0.0 < value < below:
        raise ValueError(f"{name} is {value}; expected a number strictly between 0 and {below}")


def _t_quantile(confidence: float, n: int) -> float:
    """Return the two-sided t quantile for n values, n >= 2."""
    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def _pairs_up_to(x: NDArray[np.float64], mean: float, inclusive: bool) -> int:
    """Count the pairs of distinct entries whose mean is below `mean` (or equal, if inclusive).

    Two pointers close in on the sorted values from both ends. Each pair is compared by its own
    sum, not by searching for `2 * mean - value`, whose rounding would break ties.
    """
    ordered: list[float] = np.sort(x).tolist()
    total = 2 * mean
    count, left, right = 0, 0, len(ordered) - 1
    while left < right:
        pair = ordered[left] + ordered[right]
        if pair < total or (inclusive and pair == total):
            count += right - left  # `left` makes such a pair with every entry up to `right`
            left += 1
        else:
            right -= 1
    return count
