"""Plots of the figures, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.reproduce.m_distinct import Curve

mpl.use("Agg")

AXES = ("release", "d", "m", "theta")
"""Curves that hold x values."""

TITLES = {
    "3a": ("Values disclosed under l-diversity", "release", "share of published values"),
    "3b": ("Values disclosed under l-diversity", "diameter d", "share of published values"),
    "4a": ("Records m-Invariance cannot publish", "release", "records, added up"),
    "4b": ("Records m-Invariance cannot publish", "diameter d", "records over all releases"),
    "5a": ("Query error of m-Distinct", "release", "median error"),
    "5b": ("Query error, m = l = 4", "theta", "median error"),
    "6": ("Query error of m-Distinct", "diameter d", "median error"),
    "7": ("Counterfeits of m-Distinct", "release", "per group"),
    "8a": ("Counterfeits of m-Distinct", "diameter d", "per group"),
    "8b": ("Counterfeits of m-Distinct", "m", "per group"),
    "9": ("Cost of the second release", "d, or m", "processor seconds"),
}


def draw(figures: dict[str, Curve], out: Path) -> None:
    """Writes `figure-<name>.png` for every figure."""
    for name, curves in figures.items():
        title, x_name, y_name = TITLES[name]
        picture = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = picture.subplots()
        for label, values in curves.items():
            if label in AXES:
                continue
            x = _abscissa(curves, label, len(values))
            axes.plot(x, values, marker="o", markersize=3, label=label)
        if name == "3a":
            axes.axhline(0.66, color="grey", linestyle=":", label="paper, l = 2, release 20")
        axes.set(title=f"Figure {name}: {title}", xlabel=x_name, ylabel=y_name)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        if "theta" not in curves:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        picture.savefig(out / f"figure-{name}.png", dpi=120)


def _abscissa(curves: Curve, label: str, n: int) -> list[float]:
    """The x values that belong to a curve; releases are counted from 1."""
    named = label.removeprefix("by ")
    if named in curves and named != label:
        return curves[named]
    for key in AXES:
        if key in curves and len(curves[key]) == n:
            return curves[key]
    return [float(i) for i in range(1, n + 1)]
