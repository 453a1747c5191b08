"""Values as notebooks show them: a heading and a small table, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def shown(heading: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A heading and a table."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<p><b>{escape(heading)}</b></p><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: Any) -> str:
    return "" if cell is None else escape(f"{cell:g}" if isinstance(cell, float) else str(cell))
