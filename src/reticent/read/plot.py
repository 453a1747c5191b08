"""Plots of answers as SVG: without scripts or network access, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from reticent.read.answer import FIGURES
from reticent.svg import WIDTH, Range, draw, ranges, standalone


def dots(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw a dot and an interval per group, on one scale from 0."""
    items = [Range(_name(row), row["estimate"], row["low"], row["high"], None) for row in rows]
    return standalone(ranges(title, items, 190, top=_top(rows), label=lambda value, _: _short(value)))


def line(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw the windows of a series as a line with an interval band, and a mark where the level changes."""
    top, height, left = _top(rows), 260, 60
    step = (WIDTH - left - 20) / max(len(rows) - 1, 1)

    def down(value: float) -> float:
        return height - 40 - (height - 60) * max(0.0, value) / top

    def points(name: str) -> list[str]:
        return [f"{left + number * step:.1f},{down(row[name]):.1f}" for number, row in enumerate(rows)]

    body = "".join(
        f'<line class="grid" x1="{left}" x2="{WIDTH - 20}" y1="{down(tick):.1f}" y2="{down(tick):.1f}"/>'
        f'<text class="tick" x="{left - 6}" y="{down(tick) + 4:.1f}" text-anchor="end">{_short(tick)}</text>'
        for tick in (top * part / 4 for part in range(5))
    )
    body += f'<polygon class="band" points="{" ".join(points("low") + points("high")[::-1])}"/>'
    body += f'<polyline class="front" points="{" ".join(points("estimate"))}"/>'
    for x in (left + number * step for number, row in enumerate(rows) if row["change"]):
        body += f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{height - 40}"/>'
    for number in dict.fromkeys((0, len(rows) - 1)) if rows else ():
        x, anchor = left + number * step, "end" if number else "start"
        name = escape(_name(rows[number]))
        body += f'<text class="tick" x="{x:.1f}" y="{height - 20}" text-anchor="{anchor}">{name}</text>'
    return standalone(draw(title, body, height))


def _top(rows: Sequence[dict[str, Any]]) -> float:
    return max((row["high"] for row in rows), default=0) or 1


def _name(row: dict[str, Any]) -> str:
    text = ", ".join(str(cell) for name, cell in row.items() if name not in (*FIGURES, "change", "records"))
    return text if len(text) <= 28 else text[:27] + "…"


def _short(value: float) -> str:
    return f"{value:.3f}" if 0 < abs(value) < 1 else f"{value:,.0f}"
