"""Small pieces of HTML; text is escaped unless it is markup already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

Cell = str | tuple[str, str]
"""The text of a cell, or (text, class)."""


def tag(name: str, content: str, *, raw: bool = False, **attributes: str) -> str:
    """Return one element; the attribute `css` becomes `class`."""
    pairs = "".join(f' {"class" if key == "css" else key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{pairs}>{content if raw else escape(content)}</{name}>"


def paragraph(text: str, css: str = "") -> str:
    """Return a paragraph."""
    return tag("p", text, css=css) if css else tag("p", text)


def bullets(items: Iterable[str]) -> str:
    """Return a bulleted list."""
    return tag("ul", "".join(tag("li", item) for item in items), raw=True)


def tiles(items: Iterable[tuple[str, str]]) -> str:
    """Return large figures, each with its meaning."""
    shown = "".join(f'<div class="tile">{tag("b", figure)}{tag("span", meaning)}</div>' for figure, meaning in items)
    return f'<div class="tiles">{shown}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: Iterable[int] = ()) -> str:
    """Return a table that becomes a list of cards on a phone; columns in `numbers` are right-aligned."""
    right = set(numbers)
    top = "".join(tag("th", name, css="n") if i in right else tag("th", name) for i, name in enumerate(head))
    body = "".join(
        tag("tr", "".join(_cell(cell, head[i], i in right) for i, cell in enumerate(row)), raw=True) for row in rows
    )
    return f'<table class="stack"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _cell(cell: Cell, of: str, right: bool) -> str:  # noqa: FBT001 - internal
    text, css = cell if isinstance(cell, tuple) else (cell, "")
    css = f"{css}{' n' if right else ''}".strip()
    return f'<td data-of="{escape(of)}"{f" class={chr(34)}{css}{chr(34)}" if css else ""}>{tag("span", text) if text else ""}</td>'


def figure(svg: str, caption: str) -> str:
    """Return a plot with its caption."""
    return f"<figure>{svg}{tag('figcaption', caption)}</figure>"


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.0909), percent(0.00004), percent(0)
    ('9.1%', '<0.01%', '0%')
    """
    if share == 0:
        return "0%"
    if share < 0.0001:
        return "<0.01%"
    return f"{share:.2%}" if share < 0.01 else f"{share:.1%}".replace("100.0%", "100%")
