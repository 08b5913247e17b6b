"""Figures, one function each. They estimate nothing; colours are Okabe and Ito's."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLOURS = {
    "baseline": "#000000",
    "architecture_m": "#0072B2",
    "model_c": "#D55E00",
    "model_d": "#009E73",
    "review": "#CC79A7",
    "current": "#000000",
    "v016_additive": "#0072B2",
    "v017_exploration": "#009E73",
    "v017_full": "#D55E00",
    "self_architect": "#CC79A7",
    "self_architect_common": "#56B4E9",
    "self_architect_queries": "#E69F00",
    "self_architect_rollout": "#7F3C8D",
    "self_architect_blind": "#999999",
}
_DASHES = {
    **dict.fromkeys(("current", "v016_additive", "v017_exploration", "v017_full"), "--"),
    **dict.fromkeys(("self_architect", "self_architect_common", "self_architect_queries"), ":"),
    "self_architect_blind": "-.",
}

_OTHER = ("#E69F00", "#56B4E9", "#F0E442", "#999999")
NAMES = {
    "architecture_m": "Architecture M",
    "model_c": "Model C",
    "model_d": "Model D",
    "baseline": "baseline",
    "review": "review",
    "current": "current",
    "v016_additive": "v0.16 additive rescore",
    "v017_exploration": "v0.17 exploration",
    "v017_full": "v0.17 power law",
    "self_architect": "self-architect",
    "self_architect_common": "common draws",
    "self_architect_queries": "200 queries",
    "self_architect_rollout": "rollout",
    "self_architect_blind": "coin",
}

# Inches; the least width is that of the words around a single panel.
_LEAST_WIDTH = 6.4
_PANEL_HEIGHT = 2.5
_LEFT, _RIGHT, _BESIDE = 0.8, 0.25, 0.25


def quality_over_time(
    series: "pd.DataFrame", published: "pd.DataFrame | None" = None, title: str = ""
) -> bytes:
    """Draw quality ratio over time, one panel per scenario, one line with bands per arm.

    Args:
        series: As :func:`elfmem_sim.store.over_time` returns it.
        published: Published final values to mark: columns scenario, arm, value (in percent).
        title: Line above the panels.

    Returns:
        A PNG, the same bytes for the same data.
    """
    return png_of(_quality_figure(series, published, title))


def _quality_figure(
    series: "pd.DataFrame", published: "pd.DataFrame | None", title: str
) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = series[series["estimand"] == "quality_ratio"]
    scenarios = list(dict.fromkeys(data["scenario"]))
    columns = min(3, len(scenarios))
    rows = -(-len(scenarios) // columns)
    width = max(_LEAST_WIDTH, 4.2 * columns)
    head = _wrapped(title, 11 * width) + _wrapped(_key(data["n"]), 11.9 * width)
    titles = ["\n".join(_wrapped(name, 9 * (width / columns - 0.4))) for name in scenarios]
    title_height = 0.25 * max(name.count("\n") + 1 for name in titles)
    styles = _styles(list(dict.fromkeys(data["arm"])))
    names = [NAMES.get(arm, arm) for arm in styles]
    legend_columns = min(len(names), max(1, int(10 * width / (max(map(len, names)) + 8))))
    # All in inches. The layout is computed here, as matplotlib's own depends on how often it draws.
    top = 0.15 + 0.2 * len(head) + title_height
    bottom = 0.75 + 0.27 * -(-len(names) // legend_columns)
    between = 0.65 + title_height
    height = top + _PANEL_HEIGHT * rows + between * (rows - 1) + bottom
    panel_width = (width - _LEFT - _RIGHT - _BESIDE * (columns - 1)) / columns

    figure = Figure(figsize=(width, height), dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.subplots(
        rows,
        columns,
        sharey=True,
        squeeze=False,
        gridspec_kw={
            "left": _LEFT / width,
            "right": 1 - _RIGHT / width,
            "bottom": bottom / height,
            "top": 1 - top / height,
            "wspace": _BESIDE / panel_width,
            "hspace": between / _PANEL_HEIGHT,
        },
    )
    lines: dict[str, Any] = {}
    for axis, scenario, name in zip(axes.flat, scenarios, titles, strict=False):
        lines |= _quality_panel(axis, data[data["scenario"] == scenario], styles, published)
        axis.set_title(name, fontsize=12)
        axis.set_xlabel("day", fontsize=11)
    for axis in axes.flat[len(scenarios) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("quality ratio (%)", fontsize=11)
    figure.legend(
        [lines[arm] for arm in styles], names, loc="lower center", ncols=legend_columns,
        fontsize=11, frameon=False,
    )  # fmt: skip
    figure.suptitle("\n".join(head), fontsize=11, y=1 - 0.08 / height)
    return figure


def two_seed_distributions(effects: "pd.DataFrame") -> bytes:
    """Draw each claimed effect on the distribution of what two seeds show, one panel per record.

    Args:
        effects: As :func:`elfmem_sim.audit.two_seed_table` returns it.

    Returns:
        A PNG, the same bytes for the same data.
    """
    return png_of(_two_seed_figure(effects))


def _two_seed_figure(effects: "pd.DataFrame") -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = [(adr, group) for adr, group in effects.groupby("adr", sort=False)]
    row, gap, head, foot, width, left = 0.3, 0.75, 1.15, 0.55, 10.0, 3.9
    panels = [row * (len(group) + 0.6) for _, group in groups]
    height = head + sum(panels) + gap * (len(panels) - 1) + foot
    figure = Figure(figsize=(width, height), dpi=120)
    FigureCanvasAgg(figure)
    top = height - head
    for (adr, group), size in zip(groups, panels, strict=True):
        axis = figure.add_axes(
            (left / width, (top - size) / height, 1 - (left + 0.25) / width, size / height)
        )
        _two_seed_panel(axis, group)
        axis.set_title(f"ADR {adr}", fontsize=12, loc="left")
        top -= size + gap
    axis.set_xlabel("effect (percentage points)", fontsize=11)
    handles, labels = axis.get_legend_handles_labels()
    for other in figure.axes:  # a mark that the last panel lacks
        for handle, label in zip(*other.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(
        handles, labels, loc="upper center", ncols=2, fontsize=11, frameon=False,
        bbox_to_anchor=(0.5, 1 - 0.35 / height),
    )  # fmt: skip
    figure.suptitle(
        "Published effects, and what two seeds show by chance", fontsize=13, y=1 - 0.1 / height
    )
    return figure


def _two_seed_panel(axis: Any, group: "pd.DataFrame") -> None:
    import numpy as np

    names = [name for name in group.columns if name[:1] == "q" and name[1:].isdigit()]
    shares = np.array([int(name[1:]) / 100 for name in names])
    for place, (_, effect) in enumerate(group.iterrows()):
        y = len(group) - 1 - place
        quantiles = effect[names].to_numpy(float)
        edges = np.linspace(quantiles[0], quantiles[-1], 41)
        # Distinct quantiles only: np.interp wants rising places.
        rising, first = np.unique(quantiles, return_index=True)
        density = np.diff(np.interp(edges, rising, shares[first]))
        if density.max() > 0:
            axis.stairs(
                y - 0.35 + 0.8 * density / density.max(), edges, baseline=y - 0.35, fill=True,
                color="#BBBBBB", label=_first("what two seeds show (98 % of pairs)", place),
            )  # fmt: skip
        if np.isfinite(effect["claimed_low"]):
            axis.plot(
                [effect["claimed_low"], effect["claimed_high"]], [y, y], color="#D55E00",
                linewidth=5, solid_capstyle="butt", label=_first("claimed range", place),
            )  # fmt: skip
        else:
            axis.plot(
                effect["published"], y, marker="D", markersize=7, linestyle="none",
                color="#D55E00", markeredgecolor="white",
                label=_first("published (mean of two seeds)", place),
            )  # fmt: skip
        axis.plot(  # a bootstrap's interval need not hold its estimate
            [effect["low"], effect["estimate"], effect["high"]], [y] * 3, color="#0072B2",
            marker="|", markersize=14, markeredgewidth=2.5, markevery=[1], linewidth=2.5,
            solid_capstyle="butt", label=_first("population mean, 95 % interval", place),
        )  # fmt: skip
    axis.axvline(0.0, color="black", linewidth=0.8)
    axis.set_ylim(-0.7, len(group) - 0.3)
    axis.set_yticks(range(len(group))[::-1], list(group["claim"]), fontsize=10)
    axis.tick_params(axis="x", labelsize=10)
    axis.grid(axis="x", alpha=0.25)


def _first(label: str, place: int) -> str:
    return label if place == 0 else "_" + label


def _key(n: "pd.Series") -> str:
    """Say what lines and bands are."""
    least, most = int(n.min()), int(n.max())
    if most == 1:
        return "line: one seed; one seed has no interval"
    seeds = f"{least}" if least == most else f"{least} to {most}"
    return (
        f"line: mean of {seeds} seeds; dark band: 95 % interval of the mean; light band: middle "
        "half of the seeds"
    )


def _quality_panel(
    axis: Any,
    data: "pd.DataFrame",
    styles: Mapping[str, tuple[str, str]],
    published: "pd.DataFrame | None",
) -> dict[str, Any]:
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    lines = {}
    for arm in dict.fromkeys(data["arm"]):
        colour, dashes = styles[arm]
        rows = data[data["arm"] == arm]
        day = rows["day"].to_numpy()
        mean = 100 * rows["mean"].to_numpy()
        # Student's interval, as in the tables. One seed has none, and so no band.
        error = 100 * stdtrit(rows["n"].to_numpy() - 1, 0.975) * rows["mcse"].to_numpy()
        axis.fill_between(
            day, 100 * rows["q25"], 100 * rows["q75"], color=colour, alpha=0.10, linewidth=0
        )
        axis.fill_between(day, mean - error, mean + error, color=colour, alpha=0.35, linewidth=0)
        (lines[arm],) = axis.plot(day, mean, color=colour, linewidth=1.8, linestyle=dashes)
        if published is not None:
            mark = published[
                (published["scenario"] == rows["scenario"].iloc[0]) & (published["arm"] == arm)
            ]
            for value in mark["value"]:
                axis.plot(
                    day[-1], value, marker="D", markersize=6, linestyle="none",
                    markerfacecolor=colour, markeredgecolor="white", clip_on=False,
                )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=10)
    return lines


def _styles(arms: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and dashes by arm, the same in every panel; no two arms look alike."""
    spare = ((colour, dashes) for dashes in ("-", "--", ":", "-.") for colour in _OTHER)
    return {
        arm: (COLOURS[arm], _DASHES.get(arm, "-"))
        if arm in COLOURS
        else next(spare, ("#666666", "-"))
        for arm in arms
    }


def _wrapped(text: str, letters: float) -> list[str]:
    from textwrap import wrap

    return wrap(text, int(letters))


def png_of(figure: "Figure") -> bytes:
    """Return a figure as PNG, without anything that depends on time or place."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
