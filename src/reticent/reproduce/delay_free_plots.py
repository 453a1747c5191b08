"""Plots of the figures on delay-free streams, one file each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("Agg")

AXES = {
    ("3 and 4", "time"): ("3", "Time per tuple", "quasi-identifiers", "milliseconds"),
    ("3 and 4", "loss"): ("4", "Information loss", "quasi-identifiers", "information loss"),
    ("3 and 4", "cells"): ("4, equation 5", "Loss of the quasi-identifiers", "quasi-identifiers", "information loss"),
    ("5 and 6", "time"): ("5", "Time per tuple", "records", "milliseconds"),
    ("5 and 6", "loss"): ("6", "Information loss", "records", "information loss"),
    ("5 and 6", "cells"): ("6, equation 5", "Loss of the quasi-identifiers", "records", "information loss"),
    ("7", "time"): ("7a", "Time per tuple", "l", "milliseconds"),
    ("7", "loss"): ("7b", "Information loss", "l", "information loss"),
    ("8", "sau"): ("8", "Sensitive attribute uncertainty", "records", "SAU"),
}
_NOT_CURVES = {"x", "average error", "average error of the mean", "correlation", "standard error"}
_STYLES: dict[str, Any] = {
    "limit": ":",
    "empirical": "--",
    "literal, uniform": "-.",
    "literal, empirical": (0, (5, 1, 1, 1, 1, 1)),
    "without": (0, (1, 4)),
}
_MANY = 4


def draw(figures: dict[str, Any], out: Path) -> None:
    """Writes `figure-<number>-<stream>.png` for every figure."""
    for key, parts in figures.items():
        title, _, stream = key.rpartition(" ")
        for part, curves in parts.items():
            number, words, x_name, y_name = AXES.get((title, part), ("9-10", f"Query {part}", "window", "records"))
            name = f"{number}-{part}" if title == "9 and 10" else number
            picture = Figure(figsize=(9.0, 4.6) if _many(curves) else (6.4, 4.0), layout="constrained")
            _plot(picture.subplots(), curves, log=number in ("3", "5"))
            axes = picture.axes[0]
            axes.set(title=f"Figure {number}: {words} ({stream})", xlabel=x_name, ylabel=y_name)
            picture.savefig(out / f"figure-{re.sub(r'[^a-zA-Z0-9-]+', '-', name)}-{stream}.png", dpi=110)


def _many(curves: dict[str, Any]) -> bool:
    return len(set(curves) - _NOT_CURVES) > _MANY


def _plot(axes: Any, curves: dict[str, Any], *, log: bool) -> None:
    colours: dict[str, str] = {}
    for label, values in curves.items():
        if label in _NOT_CURVES:
            continue
        # One colour per l (or per curve), one style per method.
        name, _, l = label.rpartition("l = ")
        colour = colours.setdefault(l if name else label, f"C{len(colours)}")
        style = next((style for word, style in _STYLES.items() if label.startswith(word)), "-")
        if label.startswith("without") and "matched" not in label:
            continue  # they lie on top of one another
        numbers = [float("nan") if value is None else value for value in values]
        axes.plot(curves["x"], numbers, linestyle=style, color=colour, linewidth=1.2, label=label)
    if log:
        axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    if _many(curves):  # beside the curves, which they would hide
        axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        axes.legend(fontsize=6, ncols=2)
