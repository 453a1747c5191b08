"""Figure 3 of Wu, He, Zaiane: sensitivity, specificity and accuracy with and without supervision, as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

MEASURES = ("sensitivity", "specificity", "accuracy")


def draw(study: dict[str, Any], out: Path) -> None:
    """One plot per table: a panel per setting, a group of bars per release."""
    settings = list(study["margins"])
    for name, figures in study["data"].items():
        plot, panels = plt.subplots(1, len(settings), figsize=(13, 5), sharey=True, layout="constrained")
        for panel, setting in zip(panels, settings, strict=True):
            releases = {"original": figures["original"], **figures[setting]}
            for i, measure in enumerate(MEASURES):
                places = [x + 0.27 * i for x in range(len(releases))]
                panel.bar(places, [100 * s[measure] for s in releases.values()], width=0.25, label=measure)
            panel.set_xticks([x + 0.27 for x in range(len(releases))], list(releases), rotation=30, ha="right")
            panel.set_title(f"{name}: {setting}")
            panel.grid(axis="y", alpha=0.3)
        panels[0].set_ylabel("per cent")
        plot.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(MEASURES))
        plot.savefig(out / f"supervision-{name.replace(' ', '-')}.png", dpi=90)
        plt.close(plot)
