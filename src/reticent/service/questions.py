"""What pages ask of a release; each runs where the release is open (`asking`), on what was published alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.errors import ReticentError
from reticent.read.answer import Answer
from reticent.read.received import Received

_WINDOWS, _SEGMENTS = 40, 10


@dataclass(frozen=True)
class ReleaseSummary:
    """What a form needs to know of a release."""

    records: int
    sensitive: str
    values: tuple[str, ...]
    columns: tuple[str, ...]


def summarize(received: Received) -> ReleaseSummary:
    """What can be asked for."""
    columns = tuple(name for name in received.columns if name not in ("event", "seq"))
    return ReleaseSummary(received.records, received.sensitive, tuple(received.values), columns)


def count_or_share(received: Received, values: list[str], where: list[str], by: list[str], share: bool) -> Answer:  # noqa: FBT001
    """Counts or shares with their intervals."""
    ask = received.share if share else received.count
    return ask(values or None, where, by)


def most_uneven_value(received: Received) -> str:
    """The value that is offered most unevenly over the stretches of the stream: a look at the lines, no test."""
    table, names = received.shape.table, received.shape.domain
    slots = [name for name in table.column_names if name.startswith(f"{received.sensitive}_")]
    if not slots or received.records < _WINDOWS:
        return names[0]
    place = {str(name): code for code, name in enumerate(names)}
    part = np.arange(received.records) * _SEGMENTS // received.records
    often = np.zeros((len(names), _SEGMENTS))
    for slot in slots:
        codes = np.array([place.get(str(cell), 0) for cell in table.column(slot).to_pylist()])
        np.add.at(often, (codes, part), 1)
    mean = often.mean(axis=1)
    return names[int(np.argmax((often.max(axis=1) - mean) / np.sqrt(np.maximum(mean, 1))))]


def windows(received: Received, value: str) -> list[dict[str, Any]]:
    """Windows of a column of times, where there is one with a handful of days or hours; otherwise of records."""
    for unit in ("day", "hour"):
        try:
            rows = received.series(value, every=unit).to_list()
        except ReticentError:
            break
        if len(rows) >= 6:
            return rows[-4 * _WINDOWS :]
    return received.series(value, every=max(1, received.records // _WINDOWS)).to_list()
