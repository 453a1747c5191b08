"""The figures of the evolving reproduction, drawn without a display."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.reproduce.evolving import Curve

TITLES = {
    "figure 8": "Insertion of 10% in one batch, l = 10",
    "figure 9": "Deletion of 10% in one batch, l = 10",
    "figure 9, one by one": "Deletion of 10%, record after record, l = 10",
    "figure 10": "Deletion of 10% by ENCC",
}


def draw(figures: dict[str, Curve], out: Path) -> None:
    """One plot per figure, time over size, both on logarithmic axes since the strategies lie far apart."""
    for name, curves in figures.items():
        figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        for (label, curve), mark in zip(curves.items(), cycle("osv^Dx*"), strict=False):
            axes.plot([n / 1000 for n in curve], list(curve.values()), marker=mark, label=label, linewidth=1.4)
        axes.set(
            xscale="log", yscale="log", xlabel="records (thousands)", ylabel="time (ms)", title=TITLES.get(name, name)
        )
        sizes = sorted({n for curve in curves.values() for n in curve})
        axes.set_xticks([n / 1000 for n in sizes], [f"{n / 1000:g}" for n in sizes])
        axes.minorticks_off()
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(frameon=False)
        figure.savefig(out / f"{name.replace(', ', '-').replace(' ', '-')}.png", dpi=150)
        plt.close(figure)
