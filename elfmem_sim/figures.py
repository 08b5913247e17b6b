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
    return _png(_quality_figure(series, published, title))


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


def _png(figure: "Figure") -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
