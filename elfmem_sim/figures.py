"""Figures, one function each. They compute nothing; colours are Okabe and Ito's."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {
    "baseline": "#000000",
    "architecture_m": "#0072B2",
    "model_c": "#D55E00",
    "model_d": "#009E73",
    "review": "#CC79A7",
}
_OTHER = ("#E69F00", "#56B4E9", "#F0E442", "#999999")
NAMES = {
    "architecture_m": "Architecture M",
    "model_c": "Model C",
    "model_d": "Model D",
    "baseline": "baseline",
    "review": "review",
}


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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = series[series["estimand"] == "quality_ratio"]
    scenarios = list(dict.fromkeys(data["scenario"]))
    columns = min(3, len(scenarios))
    rows = -(-len(scenarios) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.3 * rows + 0.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axis, scenario in zip(axes.flat, scenarios, strict=False):
        _quality_panel(axis, data[data["scenario"] == scenario], published)
        axis.set_title(scenario, fontsize=12)
    for axis in axes.flat[len(scenarios) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("quality ratio (%)", fontsize=11)
    for axis in axes.flat[: len(scenarios)]:
        axis.set_xlabel("day", fontsize=11)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    n = int(data["n"].min())
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(5, len(labels)), fontsize=11,
        frameon=False,
    )  # fmt: skip
    figure.suptitle(
        f"{title}\nline: mean of {n} seeds; dark band: 95 % interval of the mean; "
        "light band: middle half of the seeds".strip(),
        fontsize=11,
    )
    return _png(figure)


def _quality_panel(axis: Any, data: "pd.DataFrame", published: "pd.DataFrame | None") -> None:
    for arm, colour in _coloured(list(dict.fromkeys(data["arm"]))):
        rows = data[data["arm"] == arm]
        day = rows["day"].to_numpy()
        mean, error = 100 * rows["mean"].to_numpy(), 196 * rows["mcse"].fillna(0.0).to_numpy()
        axis.fill_between(
            day, 100 * rows["q25"], 100 * rows["q75"], color=colour, alpha=0.10, linewidth=0
        )
        axis.fill_between(day, mean - error, mean + error, color=colour, alpha=0.35, linewidth=0)
        axis.plot(day, mean, color=colour, linewidth=1.8, label=NAMES.get(arm, arm))
        if published is not None:
            mark = published[
                (published["scenario"] == rows["scenario"].iloc[0]) & (published["arm"] == arm)
            ]
            axis.plot(
                [day[-1]] * len(mark), mark["value"], marker="D", markersize=6, linestyle="none",
                markerfacecolor=colour, markeredgecolor="white", clip_on=False,
            )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=10)


def _coloured(arms: Sequence[str]) -> list[tuple[str, str]]:
    spare = iter(_OTHER)
    return [(arm, COLOURS.get(arm) or next(spare, "#666666")) for arm in arms]


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
