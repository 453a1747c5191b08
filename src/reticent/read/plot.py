"""Plots of answers as SVG: without scripts or network access, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from reticent.read.answer import FIGURES

_WIDTH, _ROOM, _LINE = 640, 190, 26
_STYLE = (
    "<style>svg{background:#fff;color:#1d2a33;font:13px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){svg{background:#14191d;color:#dde5ea}}"
    ".t{fill:currentColor}.s{fill:currentColor;opacity:.65;font-size:11px}.g{stroke:currentColor;opacity:.15}"
    ".w{stroke:#2f7f86;stroke-width:2}.d{fill:#2f7f86}.b{fill:#2f7f86;opacity:.2}.l{fill:none;stroke:#2f7f86;stroke-width:2}"
    ".c{stroke:#c4552d;stroke-width:1.5;stroke-dasharray:4 3}</style>"
)


def dots(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw a dot and an interval per group, on one scale from 0."""
    top = max((row["high"] for row in rows), default=0) or 1
    span, height = _WIDTH - _ROOM - 90, 44 + _LINE * len(rows)

    def at(value: float) -> float:
        return _ROOM + span * max(0.0, value) / top

    body = _grid(top, lambda share: (at(top * share), 34, at(top * share), height - 8))
    for number, row in enumerate(rows):
        y = 48 + number * _LINE
        body += f'<text class="t" x="{_ROOM - 10}" y="{y + 4}" text-anchor="end">{escape(_name(row))}</text>'
        body += f'<line class="w" x1="{at(row["low"]):.1f}" x2="{at(row["high"]):.1f}" y1="{y}" y2="{y}"/>'
        body += f'<circle class="d" cx="{at(row["estimate"]):.1f}" cy="{y}" r="5"/>'
        body += f'<text class="s" x="{_WIDTH - 8}" y="{y + 4}" text-anchor="end">{_short(row["estimate"])}</text>'
    return _svg(title, body, height + 10)


def line(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw the windows of a series as a line with an interval band, and a mark where the level changes."""
    top, height, left = max((row["high"] for row in rows), default=0) or 1, 300, 60
    step = (_WIDTH - left - 20) / max(len(rows) - 1, 1)

    def place(number: int, value: float) -> str:
        return f"{left + number * step:.1f},{height - 40 - (height - 80) * max(0.0, value) / top:.1f}"

    body = _grid(top, lambda share: (left, height - 40 - (height - 80) * share, _WIDTH - 20, 0), flat=True)
    lower = [place(i, row["low"]) for i, row in enumerate(rows)]
    upper = [place(i, row["high"]) for i, row in enumerate(rows)]
    body += f'<polygon class="b" points="{" ".join(lower + upper[::-1])}"/>'
    body += f'<polyline class="l" points="{" ".join(place(i, row["estimate"]) for i, row in enumerate(rows))}"/>'
    for number, row in enumerate(rows):
        if row["change"]:
            x = left + number * step
            body += f'<line class="c" x1="{x:.1f}" x2="{x:.1f}" y1="40" y2="{height - 40}"/>'
    for number in (0, len(rows) - 1) if len(rows) > 1 else (0,) if rows else ():
        anchor = "end" if number else "start"
        x = left + number * step
        body += (
            f'<text class="s" x="{x:.1f}" y="{height - 20}" text-anchor="{anchor}">{escape(_name(rows[number]))}</text>'
        )
    return _svg(title, body, height)


def _grid(top: float, ends: Any, *, flat: bool = False) -> str:
    """Draw five grid lines with their numbers."""
    out = ""
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, y, far, low = ends(share)
        out += f'<line class="g" x1="{x:.1f}" y1="{y:.1f}" x2="{far:.1f}" y2="{y if flat else low:.1f}"/>'
        spot = (
            f'x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end"' if flat else f'x="{x:.1f}" y="30" text-anchor="middle"'
        )
        out += f'<text class="s" {spot}>{_short(top * share)}</text>'
    return out


def _name(row: dict[str, Any]) -> str:
    cells = [str(cell) for name, cell in row.items() if name not in (*FIGURES, "change", "records")]
    text = ", ".join(cells)
    return text if len(text) <= 28 else text[:27] + "…"


def _short(value: float) -> str:
    return f"{value:.3f}" if 0 < abs(value) < 1 else f"{value:,.0f}"


def _svg(title: str, body: str, height: float) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    return (
        f'{head}<title>{escape(title)}</title>{_STYLE}<text class="t" x="8" y="16">{escape(title)}</text>{body}</svg>\n'
    )
