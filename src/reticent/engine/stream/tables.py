"""Tables of a stream's release, built on first access: `group` and `tuple` for engines with groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import UInt64s
from reticent.engine.stream.base import Groups

T = TypeVar("T")


class OnDemand(Mapping[str, T]):
    """Values by name, built on first access: a caller who needs only the lines never pays for the tables."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        self._make = make
        self._values: Mapping[str, T] | None = None

    def _all(self) -> Mapping[str, T]:
        if self._values is None:
            self._values = self._make()
        return self._values

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


_NAME_LENGTH = 17


def tuple_table(columns: pa.Table, seqs: UInt64s, groups: Groups) -> pa.Table:
    """Return the records of a placed batch, each with its group and position."""
    arrays = [group_names(groups.groups), pa.array(seqs), *columns.columns]
    return pa.Table.from_arrays(arrays, names=["group", "seq", *columns.column_names])


def group_table(groups: Groups, labels: pa.Array) -> pa.Table:
    """Return the groups that a batch opened, one row per candidate."""
    each = np.repeat(groups.opened, np.diff(groups.offsets))
    return pa.Table.from_arrays(
        [group_names(each), labels.take(pa.array(groups.codes)), pa.array(groups.counts)],
        names=["group", "value", "count"],
    )


def group_names(ids: UInt64s) -> pa.Array:
    """Return the published names of groups."""
    offsets = np.arange(0, _NAME_LENGTH * len(ids) + 1, _NAME_LENGTH, dtype=np.int32)
    data = _core.stream.group_names(ids)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))
