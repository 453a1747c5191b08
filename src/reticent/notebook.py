"""HTML for notebooks: a heading, a small table, a plot; all text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def table_html(heading: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a heading and a table as HTML."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<p><b>{escape(heading)}</b></p><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def image_html(svg: str) -> str:
    """Return a plot as a separate image, so that its styles and ids do not affect the page."""
    return f'<img width="640" alt="" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"/>'


def _text(cell: Any) -> str:
    return "" if cell is None else escape(f"{cell:g}" if isinstance(cell, float) else str(cell))
