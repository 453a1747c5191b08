"""The queries of the pages; they run in the query process and use only the published data."""

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
    """The records, values and columns of a release, for a query form."""

    records: int
    sensitive: str
    values: tuple[str, ...]
    columns: tuple[str, ...]


def summarize(received: Received) -> ReleaseSummary:
    """Return the values and columns that can be queried."""
    columns = tuple(name for name in received.columns if name not in ("event", "seq"))
    return ReleaseSummary(received.records, received.sensitive, tuple(received.values), columns)


def count_or_share(received: Received, values: list[str], where: list[str], by: list[str], share: bool) -> Answer:  # noqa: FBT001
    """Return counts or shares with their intervals."""
    query = received.share if share else received.count
    return query(values or None, where, by)


def most_uneven_value(received: Received) -> str:
    """Return the value whose candidate counts vary most between segments of the stream; this is not a test."""
    table, names = received.shape.table, received.shape.domain
    slots = [name for name in table.column_names if name.startswith(f"{received.sensitive}_")]
    if not slots or received.records < _WINDOWS:
        return names[0]
    place = {str(name): code for code, name in enumerate(names)}
    segment = np.arange(received.records) * _SEGMENTS // received.records
    counts = np.zeros((len(names), _SEGMENTS))
    for slot in slots:
        codes = np.array([place.get(str(cell), 0) for cell in table.column(slot).to_pylist()])
        np.add.at(counts, (codes, segment), 1)
    mean = counts.mean(axis=1)
    return names[int(np.argmax((counts.max(axis=1) - mean) / np.sqrt(np.maximum(mean, 1))))]


def windows(received: Received, value: str) -> list[dict[str, Any]]:
    """Return estimates by day or hour if the release has a time column with at least six; otherwise by record windows."""
    for unit in ("day", "hour"):
        try:
            rows = received.series(value, every=unit).to_list()
        except ReticentError:
            break
        if len(rows) >= 6:
            return rows[-4 * _WINDOWS :]
    return received.series(value, every=max(1, received.records // _WINDOWS)).to_list()
