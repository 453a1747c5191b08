"""The figures of the evolving reproduction, drawn without a display."""

from __future__ import annotations

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
METHODS = ("red", "eac", "enc", "encc", "indexed", "veil", "indexed, whole engine", "l = 10", "l = 20", "l = 30")
"""A method looks the same in every plot."""


def draw(figures: dict[str, Curve], out: Path) -> None:
    """One plot per figure, time over size, both on logarithmic axes since the methods lie far apart."""
    for name, curves in figures.items():
        figure, axes = plt.subplots(figsize=(7.6, 4.0), layout="constrained")
        for label, curve in curves.items():
            place = METHODS.index(label)
            sizes, times = [n / 1000 for n in curve], list(curve.values())
            axes.plot(sizes, times, label=label, marker="osv^Dx*osv"[place], color=f"C{place % 7}", linewidth=1.4)
        axes.set(
            xscale="log", yscale="log", xlabel="records (thousands)", ylabel="time (ms)", title=TITLES.get(name, name)
        )
        ticks = sorted({n / 1000 for curve in curves.values() for n in curve})
        axes.set_xticks(ticks, [f"{n:g}" for n in ticks])
        axes.minorticks_off()
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        figure.savefig(out / f"{name.replace(', ', '-').replace(' ', '-')}.png", dpi=110)
        plt.close(figure)
