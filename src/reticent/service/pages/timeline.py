"""What the world was shown, when, and of how many persons: from the ledger of the store, all kinds on one line of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reticent.service.pages.charts import axis, drawn, legend
from reticent.store import schema

if TYPE_CHECKING:
    from reticent.service.hub import Hub
    from reticent.store import Store

_MINUTE, _HOUR = 16, 13
_POINTS = 300


@dataclass(frozen=True)
class Shown:
    """Persons whom a publication showed for the first time, and when."""

    publisher: str
    time: str
    persons: int


def shown(store: Store, *, digits: int = _MINUTE) -> list[Shown]:
    """In the order of time; a time has so many digits, so that a stream has an entry a minute or an hour."""
    table = schema.population.c
    time = sa.func.substr(table.time, 1, digits)
    size = sa.func.sum(sa.func.length(table.persons) - store.seal.overhead)
    rows = store.read(sa.select(table.publisher, time, size).group_by(table.publisher, time).order_by(time))
    return [Shown(publisher, at, int(length) // 8) for publisher, at, length in rows]


def hours(hub: Hub) -> list[Shown]:
    """What streams showed, hour by hour."""
    return [one for one in shown(hub.store, digits=_HOUR) if one.publisher.startswith("stream:")]


def picture(store: Store, names: dict[str, str], colours: tuple[str, ...]) -> dict[str, Any]:
    """Persons shown so far, a line per publication that has a name."""
    entries, totals = [one for one in shown(store) if one.publisher in names], dict[str, int]()
    lines: dict[str, list[Any]] = {}
    for one in entries:
        totals[one.publisher] = totals.get(one.publisher, 0) + one.persons
        lines.setdefault(one.publisher, []).append([f"{one.time}Z", totals[one.publisher]])
    words = {publisher: names[publisher] for publisher in lines}
    last = max((one.time for one in entries), default="")
    return {
        "useUTC": True,
        "grid": {"left": 8, "right": 24, "top": 60, "bottom": 20, "containLabel": True},
        "legend": legend(*words.values()) | {"type": "scroll"},
        "xAxis": axis(type="time"),
        "yAxis": axis(name="persons", min=0),
        "series": [
            drawn("line", words[publisher], [*_thin(line), [f"{last}Z", line[-1][1]]], colour, step="end")
            for (publisher, line), colour in zip(lines.items(), cycle(colours), strict=False)
        ],
    }


def _thin(line: list[Any]) -> list[Any]:
    step = -(-len(line) // _POINTS)
    return [*line[:-1:step], line[-1]]
