"""The settings that are varied: the unit cube and elfmem's ``ReviewConfig``, one to the other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Value = int | float
Config = dict[str, Value]
Points = NDArray[np.float64]


@dataclass(frozen=True)
class Range:
    """Where a field is varied.

    Attributes:
        low: Least value.
        high: Largest value.
        log: Whether equal steps of the cube are equal factors instead of equal differences.
        step: Values are multiples of this, so that a recommendation can be read.
    """

    low: float
    high: float
    log: bool = False
    step: float = 1.0


RANGES: Mapping[str, Range] = {
    "drift_threshold": Range(0.05, 0.65, step=0.01),
    "min_recent_reinforced_blocks": Range(5, 80, log=True),
    "window_hours": Range(180, 2880, log=True, step=12),
    "min_reinforcement": Range(0, 5),
    "top_n": Range(12, 200, log=True),
    "cooldown_hours": Range(540, 8640, log=True, step=12),
    "max_proposals": Range(1, 10),
    "min_block_evidence": Range(0, 8, step=0.1),
    "min_age_days": Range(0, 120),
}
"""Ranges by field. elfmem bounds most fields on one side only, so these are this project's choice:
a quarter of the default to four times as much on a log scale; from nothing to about four times as
much on a linear one where the default is small; the default plus or minus 0.3 for the drift
threshold; and one block to a whole constitution of ten for the proposals. The shortest cooldown
lies below a monthly cadence, where it is none."""


@dataclass(frozen=True)
class Field:
    """One field of elfmem's ``ReviewConfig``.

    Attributes:
        name: elfmem's name.
        default: elfmem's default.
        range: Where it is varied, inside elfmem's bounds.
        whole: Whether it holds whole numbers.
    """

    name: str
    default: Value
    range: Range
    whole: bool

    def value(self, position: float) -> Value:
        """Return the value at ``position`` of the unit interval.

        Whole numbers on a linear scale have equal shares of the interval; all others are rounded
        to the field's step.
        """
        low, high = self.range.low, self.range.high
        if self.range.log:
            exact = low * (high / low) ** position
        elif self.whole:
            return min(int(high), int(low) + int(position * (int(high) - int(low) + 1)))
        else:
            exact = low + (high - low) * position
        step = 1.0 if self.whole else self.range.step
        rounded = min(high, max(low, round(round(exact / step) * step, 9)))
        return int(rounded) if self.whole else float(rounded)

    def position(self, value: Value) -> float:
        """Return a position with this value; below 0 or above 1 if it lies outside the range."""
        low, high = self.range.low, self.range.high
        if self.range.log:
            return math.log(value / low) / math.log(high / low) if value > 0 else -math.inf
        if self.whole:
            return (value - low + 0.5) / (high - low + 1)
        return (value - low) / (high - low)

    def grid(self, size: int) -> list[Value]:
        """Return at most ``size`` values from end to end, and the default if it is inside."""
        values = {self.value(u) for u in np.linspace(0.0, 1.0, size).tolist()}
        if self.range.low <= self.default <= self.range.high:
            values.add(self.default)
        return sorted(values)


def config_at(fields: Sequence[Field], point: Points) -> Config:
    """Return the settings at one point of the cube, ``float64[len(fields)]``."""
    return {field.name: field.value(u) for field, u in zip(fields, point.tolist(), strict=True)}


def defaults_of(fields: Sequence[Field]) -> Config:
    """Return elfmem's defaults."""
    return {field.name: field.default for field in fields}


def default_point(fields: Sequence[Field]) -> Points | None:
    """Return the defaults' place in the cube, or None if they lie outside."""
    point = np.array([field.position(field.default) for field in fields])
    return point if bool(np.all((point >= 0.0) & (point <= 1.0))) else None


def changed(fields: Sequence[Field], config: Config) -> list[str]:
    """Return the fields in which ``config`` differs from elfmem's defaults."""
    return [field.name for field in fields if config[field.name] != field.default]
