"""What all charts share: colours, axes, legends."""

from __future__ import annotations

from typing import Any

# Lines and bars are seen on both grounds, so they take the middle.
LINE, LINE_2, LINE_3, GREY = "#1f93ad", "#c77a12", "#d9541e", "#7b8a95"


def axis(**more: Any) -> dict[str, Any]:
    """An axis of a chart whose words and lines are readable on both grounds."""
    line = {"lineStyle": {"color": "rgba(123,138,149,.35)"}}
    words = {"axisLabel": {"color": GREY, "hideOverlap": True}, "nameTextStyle": {"color": GREY}, "splitLine": line}
    return {"type": "value", **words, **more}


def percent_axis(**more: Any) -> dict[str, Any]:
    """An axis of shares, which are given as percents."""
    own = axis(**more)
    return own | {"axisLabel": own["axisLabel"] | {"formatter": "{value}%"}}


def to_percent(share: float) -> float:
    """A share as such an axis takes it."""
    return round(100 * share, 2)


def legend(*names: str) -> dict[str, Any]:
    """The legend of a chart, above it."""
    return {"data": list(names), "top": 0, "itemWidth": 14, "itemGap": 8, "textStyle": {"color": GREY, "fontSize": 11}}


def chart_series(kind: str, name: str, data: list[Any], colour: str, **more: Any) -> dict[str, Any]:
    """One line, or one row of bars, of a chart."""
    return {"name": name, "type": kind, "data": data, "itemStyle": {"color": colour}, **more}
