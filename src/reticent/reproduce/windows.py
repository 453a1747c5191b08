"""Continuous queries over a released stream: counts per window, with their standard errors.

A query counts the records of a window whose quasi-identifiers meet a condition and whose sensitive value is in a given
set. The recipient needs only the release: in a group with T slots, K of them for these values, a record has one of them
with probability K/T. The number among m matching records of one group is hypergeometric. So the estimate is the sum of
m*K/T over the groups, and its variance is the sum of m*K/T*(1 - K/T)*(T - m)/(T - 1).

Guarantee: none of its own; it reads only published data.
Cost: O(1) per matching record; memory for the groups that are still open.
Reference: S. Kim, M. K. Sung, Y. D. Chung, Journal of Biomedical Informatics 50, 2014, section 6.4.
Differences from the paper: the estimate comes with its standard error; windows are numbers of records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from reticent.release import Release


@dataclass(frozen=True)
class Query:
    """SELECT count(*) WHERE sensitive IN values AND column IN choices ..., for each window of `every` records."""

    values: Collection[str]
    every: int
    where: Mapping[str, Collection[str]] = field(default_factory=dict)

    def matches(self, table: pa.Table) -> pa.ChunkedArray:
        """Return which rows meet the condition on the quasi-identifiers."""
        met = pa.chunked_array([np.ones(table.num_rows, dtype=bool)])
        for name, choices in self.where.items():
            matches = pc.is_in(table.column(name), value_set=pa.array(list(choices), table.schema.field(name).type))
            met = pc.and_(met, matches)
        return met


@dataclass(frozen=True)
class Estimate:
    """The recipient's estimate of the count of one window, with its standard error."""

    window: int
    count: float
    error: float


class Monitor:
    """Answers one query on a running stream; a window is answered when a later one begins, or at the end."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._groups: dict[str, list[int]] = {}  # wanted slots, slots, free slots
        self._window = 0
        self._members: dict[str, int] = defaultdict(int)

    def read(self, release: Release) -> Iterator[Estimate]:
        """Read a release and yield the estimates of the windows that are complete."""
        self._open(release.tables["group"])
        table = release.tables["tuple"]
        windows = (table.column("seq").to_numpy() // self._query.every).tolist()
        matches = self._query.matches(table).to_pylist()
        for group, window, match in zip(table.column("group").to_pylist(), windows, matches, strict=True):
            while window > self._window:
                yield self._answer()
            if match:
                self._members[group] += 1
            self._groups[group][2] -= 1

    def close(self) -> Iterator[Estimate]:
        """Yield the estimate of the last window, complete or not."""
        yield self._answer()

    def _open(self, table: pa.Table) -> None:
        wanted = set(self._query.values)
        columns = (table.column(name).to_pylist() for name in ("group", "value", "count"))
        for group, value, count in zip(*columns, strict=True):
            entry = self._groups.setdefault(group, [0, 0, 0])
            entry[0] += count if value in wanted else 0
            entry[1] += count
            entry[2] += count

    def _answer(self) -> Estimate:
        total = spread = 0.0
        for group, m in self._members.items():
            wanted, slots, _ = self._groups[group]
            share = wanted / slots
            total += m * share
            spread += m * share * (1 - share) * (slots - m) / max(slots - 1, 1)
        answer = Estimate(self._window, total, sqrt(spread))
        self._members.clear()
        self._window += 1
        for group in [name for name, entry in self._groups.items() if entry[2] == 0]:
            del self._groups[group]
        return answer


def true_counts(table: pa.Table, sensitive: str, query: Query) -> list[int]:
    """Count the matching records of the original per window."""
    wanted = pc.is_in(table.column(sensitive), value_set=pa.array(list(query.values), pa.string()))
    met = pc.and_(query.matches(table), wanted).to_numpy()
    starts = range(0, table.num_rows, query.every)
    return [int(met[start : start + query.every].sum()) for start in starts]
