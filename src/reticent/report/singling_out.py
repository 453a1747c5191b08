"""The plot of `reticent risk`: how few facts single people out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.report.svg import Bar, alone, bars

if TYPE_CHECKING:
    from reticent.audit.risk.singling_out import SinglingOut


def drawing(measured: SinglingOut) -> str:
    """One bar per column that a reader learns, the share of persons who then stand alone."""
    items = [
        Bar(f"{'+ ' if number else ''}{step.column}", step.alone, f"{step.alone:.1%} alone", mark=step.alone > 0)
        for number, step in enumerate(measured.steps)
    ]
    return alone(bars(f"{measured.persons:,} persons: who stands alone", items))
