"""Shared parts of all charts: colors, axes, legends."""

from __future__ import annotations

from typing import Any

# Medium colors, visible on a light and on a dark background.
LINE, LINE_2, LINE_3, GREY = "#1f93ad", "#c77a12", "#d9541e", "#7b8a95"


def axis(**more: Any) -> dict[str, Any]:
    """Return an axis whose labels and lines are readable on a light and on a dark background."""
    line = {"lineStyle": {"color": "rgba(123,138,149,.35)"}}
    words = {"axisLabel": {"color": GREY, "hideOverlap": True}, "nameTextStyle": {"color": GREY}, "splitLine": line}
    return {"type": "value", **words, **more}


def percent_axis(**more: Any) -> dict[str, Any]:
    """Return an axis of shares in percent."""
    own = axis(**more)
    return own | {"axisLabel": own["axisLabel"] | {"formatter": "{value}%"}}


def to_percent(share: float) -> float:
    """Return a share in percent for `percent_axis`."""
    return round(100 * share, 2)


def legend(*names: str) -> dict[str, Any]:
    """Return the legend above a chart."""
    return {"data": list(names), "top": 0, "itemWidth": 14, "itemGap": 8, "textStyle": {"color": GREY, "fontSize": 11}}


def chart_series(kind: str, name: str, data: list[Any], color: str, **more: Any) -> dict[str, Any]:
    """Return a series of a chart, such as a line or bars."""
    return {"name": name, "type": kind, "data": data, "itemStyle": {"color": color}, **more}
