"""A tuning study's figures, one function each. They estimate nothing; the same data, same bytes."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from elfmem_sim.figures import png_of
from elfmem_sim.tuning.objectives import OBJECTIVES
from elfmem_sim.tuning.space import Config, Value
from elfmem_sim.tuning.tables import REASONS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LINES = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", "--", ":", "-.")
_GATES = dict(
    zip(
        REASONS,
        ("#999999", "#56B4E9", "#0072B2", "#F0E442", "#E69F00", "#CC79A7", "#D55E00"),
        strict=True,
    )
)
_MARKS = {
    "defaults": ("k", "*", 13),
    "conservative": ("#009E73", "s", 8),
    "balanced": ("#D55E00", "D", 8),
    "responsive": ("#CC79A7", "^", 9),
}
_PANEL = (3.6, 2.4)  # inches
_ESTIMANDS = (
    ("quality_ratio", "quality (pp)"),
    ("quality_ratio_over_time", "quality over time (pp)"),
    ("recent_reach", "recent reach (pp)"),
    ("ego_moat", "ego moat (pp)"),
    ("const_align_to_self", "alignment (pp)"),
    ("retention", "retention (pp)"),
    ("amendments_per_year", "amendments a year"),
    ("proposer_calls_per_year", "proposer calls a year"),
)


def gates(shares: "pd.DataFrame") -> bytes:
    """Draw what became of the blocks at each review, one panel per scenario.

    Args:
        shares: As :func:`elfmem_sim.tuning.tables.gate_shares` returns them.
    """
    scenarios = list(dict.fromkeys(shares["scenario"]))
    title = "What became of the constitutional blocks at each review, at elfmem's defaults"
    figure, axes = _panels(len(scenarios), title, legend=True, sharey=True)
    for axis, scenario in zip(axes, scenarios, strict=True):
        part = shares[shares["scenario"] == scenario]
        days = sorted(set(part["day"]))
        width = 0.9 * min([b - a for a, b in pairwise(days)] or [30])
        bottom = [0.0] * len(days)
        for reason in REASONS:
            by_day = part[part["reason"] == reason].set_index("day")["share"]
            height = [float(by_day[day]) for day in days]
            axis.bar(days, height, width, bottom=bottom, color=_GATES[reason], label=reason)
            bottom = [a + b for a, b in zip(bottom, height, strict=True)]
        axis.set_title(scenario, fontsize=11)
        axis.set_xlabel("day of the review", fontsize=10)
        axis.set_ylim(0, 100)
    axes[0].set_ylabel("share of blocks (%)", fontsize=10)
    labels = [reason.replace("_", " ") for reason in REASONS]
    _legend(figure, axes[0].get_legend_handles_labels()[0], labels)
    return png_of(figure)


def tornado(indices: "pd.DataFrame") -> bytes:
    """Draw total-order indices with intervals, one panel per objective, the strongest on top.

    Args:
        indices: As :func:`elfmem_sim.tuning.tables.sobol_table` returns them.
    """
    indices = indices[indices["same_as"] == ""]
    objectives = list(dict.fromkeys(indices["objective"]))
    title = (
        "Share of variance in which a field takes part (bar), alone (dot); 95 % intervals, cut "
        "where they leave the frame"
    )
    figure, axes = _panels(len(objectives), title, left=2.3, columns=2, tall=0.4)
    for axis, objective in zip(axes, objectives, strict=True):
        part = indices[indices["objective"] == objective].sort_values("total", kind="stable")
        places = range(len(part))
        axis.barh(places, part["total"], color="#56B4E9", height=0.7)
        # A percentile interval need not hold the estimate.
        axis.hlines(places, part["total_low"], part["total_high"], color="k", linewidth=1.2)
        axis.plot(part["first"], places, "o", color="#D55E00", markersize=5)
        axis.set_yticks(places, part["field"], fontsize=9)
        largest = max(1.0, 1.2 * float(part["total"].max()))
        axis.set_xlim(
            min(-0.02, 1.1 * float(part["first"].min())),
            min(largest, max(0.05, 1.05 * float(part["total_high"].max()))),
        )
        axis.set_title(objective.replace("_", " "), fontsize=11)
    return png_of(figure)


def front(trials: "pd.DataFrame", marked: Mapping[str, Mapping[str, float]]) -> bytes:
    """Draw every trial in pairs of objectives; the front in colour, recommendations marked.

    Args:
        trials: One row per trial: objectives and a column ``front``.
        marked: Objectives by name of a recommendation.
    """
    names = [name for name in OBJECTIVES if name in trials]
    varying = [name for name in names if trials[name].nunique() > 1] or names
    first = "gain_mean" if "gain_mean" in varying else varying[0]
    others = [name for name in varying if name != first]
    title = f"{len(trials)} settings; orange: beaten by no other in everything (search's seeds)"
    figure, axes = _panels(max(1, len(others)), title, legend=True, sharey=True)
    for axis, name in zip(axes, others, strict=False):
        for kept, colour in ((False, "#bbbbbb"), (True, "#E69F00")):
            part = trials[trials["front"] == kept]
            axis.plot(part[name], part[first], ".", color=colour, markersize=4, alpha=0.7)
        for label, values in marked.items():
            colour, marker, size = _MARKS.get(label, ("k", "o", 8))
            axis.plot(
                values[name], values[first], marker=marker, color=colour, markersize=size,
                markeredgecolor="white", linestyle="none", label=label,
            )  # fmt: skip
        axis.set_xlabel(_objective_label(name), fontsize=10)
    axes[0].set_ylabel(_objective_label(first), fontsize=10)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return png_of(figure)


def sweeps(table: "pd.DataFrame", defaults: Config) -> bytes:
    """Draw the gain in quality ratio along each field, one panel per field.

    Args:
        table: Columns field, value, scenario, estimand, mean, low, high, n.
        defaults: Values to mark.
    """
    names = list(dict.fromkeys(table["field"]))
    data = table[table["estimand"] == "quality_ratio"]
    title = f"Gain in quality ratio over no review, one field at a time ({_key(table)})"
    figure, axes = _panels(len(names), title, legend=True, sharey=True)
    for i, (axis, name) in enumerate(zip(axes, names, strict=True)):
        _lines(axis, data[data["field"] == name], defaults[name])
        axis.set_xlabel(name, fontsize=10)
        if i % 3 == 0:
            axis.set_ylabel("gain (pp)", fontsize=10)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return png_of(figure)


def sweep(table: "pd.DataFrame", default: Value) -> bytes:
    """Draw all estimands along one field, one panel per estimand; see :func:`sweeps`."""
    name = table["field"].iloc[0]
    title = f"{name}: difference to an agent that never reviews ({_key(table)})"
    figure, axes = _panels(len(_ESTIMANDS), title, legend=True)
    for axis, (estimand, label) in zip(axes, _ESTIMANDS, strict=True):
        _lines(axis, table[table["estimand"] == estimand], default)
        axis.set_title(label, fontsize=11)
        axis.set_xlabel(name, fontsize=10)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return png_of(figure)


def _key(table: "pd.DataFrame") -> str:
    n = int(table["n"].iloc[0])
    return f"mean of {n} seeds; band: 95 % interval; dotted: default"


def _lines(axis: Any, data: "pd.DataFrame", default: Value) -> None:
    for i, scenario in enumerate(dict.fromkeys(data["scenario"])):
        rows = data[data["scenario"] == scenario]
        colour = _LINES[i % len(_LINES)]
        axis.fill_between(rows["value"], rows["low"], rows["high"], color=colour, alpha=0.2, lw=0)
        axis.plot(
            rows["value"], rows["mean"], color=colour, marker="o", markersize=3,
            linestyle=_DASHES[i % len(_DASHES)], label=scenario,
        )  # fmt: skip
    axis.axvline(default, color="#555555", linestyle=":", linewidth=1)


def _objective_label(name: str) -> str:
    return f"{name.replace('_', ' ')} ({OBJECTIVES[name].unit})"


def _panels(
    count: int,
    title: str,
    *,
    legend: bool = False,
    sharey: bool = False,
    left: float = 0.75,
    columns: int = 3,
    tall: float = 0.0,
) -> tuple["Figure", list[Any]]:
    """Return a figure with ``count`` panels, laid out in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    beside = 0.25 if sharey else left
    panel_width, panel_height = _PANEL[0], _PANEL[1] + tall
    width = max(7.5, left + columns * panel_width + (columns - 1) * beside + 0.2)
    lines = wrap(title, int(11 * width))
    between, top, bottom = 0.85, 0.6 + 0.2 * len(lines), 0.65 + (0.4 if legend else 0.0)
    panel_width = (width - left - 0.2 - (columns - 1) * beside) / columns
    height = top + rows * panel_height + (rows - 1) * between + bottom
    figure = Figure(figsize=(width, height), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.subplots(
        rows,
        columns,
        sharey=sharey,
        squeeze=False,
        gridspec_kw={
            "left": left / width,
            "right": 1 - 0.2 / width,
            "bottom": bottom / height,
            "top": 1 - top / height,
            "wspace": beside / panel_width,
            "hspace": between / panel_height,
        },
    )
    figure.suptitle("\n".join(lines), fontsize=12, y=1 - 0.12 / height, va="top")
    for axis in axes.flat[:count]:
        axis.grid(alpha=0.25)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, list(axes.flat[:count])


def _legend(figure: "Figure", handles: Sequence[Any], labels: Sequence[str]) -> None:
    columns = min(len(labels), 7)
    figure.legend(
        handles, labels, loc="lower center", ncols=columns, fontsize=10, frameon=False,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
