"""The plots of all reproductions, one file each; no display is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

DELAY_FREE = {
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
_MANY_CURVES = 4
EVOLVING = {
    "figure 8": "Insertion of 10% in one batch, l = 10",
    "figure 9": "Deletion of 10% in one batch, l = 10",
    "figure 9, one by one": "Deletion of 10%, record after record, l = 10",
    "figure 10": "Deletion of 10% by ENCC",
}
METHODS = ("red", "eac", "enc", "encc", "indexed", "veil", "indexed, whole engine", "l = 10", "l = 20", "l = 30")
"""All methods; the position sets marker and color, so a method looks the same in every plot."""
AXES = ("release", "d", "m", "theta")
"""Names of curves with x values."""
M_DISTINCT = {
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
MEASURES = ("sensitivity", "specificity", "accuracy")


@contextmanager
def _plot(
    file: Path, size: tuple[float, float], words: dict[str, str], *, legend_outside: bool = True, small: int = 8
) -> Iterator[Any]:
    """Yield axes to draw curves on; then add labels and legend, and save the plot."""
    picture = Figure(figsize=size, layout="constrained")
    axes = picture.subplots()
    yield axes
    axes.set(**words)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=small, **({"loc": "upper left", "bbox_to_anchor": (1, 1)} if legend_outside else {"ncols": 2}))
    picture.savefig(file, dpi=110)


def draw_delay_free(figures: dict[str, Any], out: Path) -> None:
    """Write `figure-<number>-<stream>.png` for every figure: one color per l (or per curve), one style per method."""
    for key, parts in figures.items():
        title, _, stream = key.rpartition(" ")
        for part, curves in parts.items():
            number, words, x, y = DELAY_FREE.get((title, part), ("9-10", f"Query {part}", "window", "records"))
            name = re.sub(r"[^a-zA-Z0-9-]+", "-", f"{number}-{part}" if title == "9 and 10" else number)
            many = len(set(curves) - _NOT_CURVES) > _MANY_CURVES
            named = {"title": f"Figure {number}: {words} ({stream})", "xlabel": x, "ylabel": y}
            size = (9.0, 4.6) if many else (6.4, 4.0)
            with _plot(out / f"figure-{name}-{stream}.png", size, named, legend_outside=many, small=6) as axes:
                _draw_curves(axes, curves)
                if number in ("3", "5"):
                    axes.set_yscale("log")


def _draw_curves(axes: Any, curves: dict[str, Any]) -> None:
    colors: dict[str, str] = {}
    for label, values in curves.items():
        if label in _NOT_CURVES or (label.startswith("without") and "matched" not in label):
            continue  # these curves coincide
        name, _, l = label.rpartition("l = ")
        color = colors.setdefault(l if name else label, f"C{len(colors)}")
        style = next((style for word, style in _STYLES.items() if label.startswith(word)), "-")
        numbers = [float("nan") if value is None else value for value in values]
        axes.plot(curves["x"], numbers, linestyle=style, color=color, linewidth=1.2, label=label)


def draw_evolving_figures(figures: dict[str, dict[str, dict[int, float]]], out: Path) -> None:
    """Draw one plot per figure, time by size, on logarithmic axes because the methods differ widely."""
    for name, curves in figures.items():
        file = out / f"{name.replace(', ', '-').replace(' ', '-')}.png"
        words = {"title": EVOLVING.get(name, name), "xlabel": "records (thousands)", "ylabel": "time (ms)"}
        with _plot(file, (7.6, 4.0), words) as axes:
            for label, curve in curves.items():
                place = METHODS.index(label)
                sizes, times = [n / 1000 for n in curve], list(curve.values())
                axes.plot(sizes, times, label=label, marker="osv^Dx*osv"[place], color=f"C{place % 7}", linewidth=1.4)
            axes.set(xscale="log", yscale="log")
            ticks = sorted({n / 1000 for curve in curves.values() for n in curve})
            axes.set_xticks(ticks, [f"{n:g}" for n in ticks])
            axes.minorticks_off()


def draw_m_distinct(figures: dict[str, dict[str, list[float]]], out: Path) -> None:
    """Write `figure-<name>.png` for every figure."""
    for name, curves in figures.items():
        title, x, y = M_DISTINCT[name]
        words = {"title": f"Figure {name}: {title}", "xlabel": x, "ylabel": y}
        with _plot(out / f"figure-{name}.png", (6.4, 3.4), words) as axes:
            for label, values in curves.items():
                if label not in AXES:
                    axes.plot(_x_values(curves, label, len(values)), values, marker="o", markersize=3, label=label)
            if name == "3a":
                axes.axhline(0.66, color="grey", linestyle=":", label="paper, l = 2, release 20")
            axes.set_ylim(bottom=0)
            if "theta" not in curves:
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _x_values(curves: dict[str, list[float]], label: str, n: int) -> list[float]:
    """Return the x values of a curve; releases are counted from 1."""
    named = label.removeprefix("by ")
    if named in curves and named != label:
        return curves[named]
    known = next((curves[key] for key in AXES if key in curves and len(curves[key]) == n), None)
    return known or [float(i) for i in range(1, n + 1)]


def draw_supervision(study: dict[str, Any], out: Path) -> None:
    """Draw Figure 3 of Wu, He, Zaiane per table: one panel per setting, one group of bars per release."""
    settings = list(study["margins"])
    for name, figures in study["data"].items():
        plot = Figure(figsize=(13, 5), layout="constrained")
        panels = plot.subplots(1, len(settings), sharey=True)
        for panel, setting in zip(panels, settings, strict=True):
            releases = {"original": figures["original"], **figures[setting]}
            for i, measure in enumerate(MEASURES):
                places = [x + 0.27 * i for x in range(len(releases))]
                panel.bar(places, [100 * s[measure] for s in releases.values()], width=0.25, label=measure)
            panel.set_xticks([x + 0.27 for x in range(len(releases))], list(releases), rotation=30, ha="right")
            panel.set_title(f"{name}: {setting}")
            panel.grid(axis="y", alpha=0.3)
        panels[0].set_ylabel("percent")
        plot.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(MEASURES))
        plot.savefig(out / f"supervision-{name.replace(' ', '-')}.png", dpi=90)
