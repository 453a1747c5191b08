"""Published fields of a stream under the veil: each at its level, and the row of the prior that they lead to.

What was climbed once is remembered, up to a bound: a column of ever new values costs time, not memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.encode.native import native
from reticent.engine.stream.values import Values
from reticent.engine.veil.levels import above_of
from reticent.errors import DataError
from reticent.policy.hierarchy import ROOT

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.veil.levels import Levels
    from reticent.policy import Policy

_TEXT = pa.string()
_MOST = 1 << 16
_FEW = 16
# Combinations of values whose rows are kept in a table; more are looked up batch by batch.
_TABLE = 1 << 20


class Fields:
    """Climbs the columns of a batch."""

    def __init__(self, policy: Policy, levels: Levels) -> None:
        self._levels = levels
        self._leveled = [name for name in policy.quasi if policy.columns[name].level > 0]
        names = dict.fromkeys([*self._leveled, *levels.by])
        self._climbs = {name: _Climb(name, levels) for name in names}
        self._by = [self._climbs[name] for name in levels.by]
        self._table: npt.NDArray[np.int64] = np.full(1, -1, dtype=np.int64)
        self._made_for: list[tuple[int, int]] = []
        self._single: dict[tuple[int, ...], npt.NDArray[np.uint32]] = {}

    def publish(self, batch: pa.Table) -> tuple[dict[str, pa.Array], npt.NDArray[np.uint32]]:
        """The columns that are released otherwise than they came, and the row of every record."""
        if batch.num_rows == 1:
            return self._one(batch)
        if batch.num_rows <= _FEW:
            return self._few(batch)
        codes = {name: climb.encode(batch.column(name)) for name, climb in self._climbs.items()}
        columns = {name: self._climbs[name].labels(codes[name]) for name in self._leveled}
        return columns, self._rows(batch.num_rows, [codes[name] for name in self._levels.by])

    def _one(self, batch: pa.Table) -> tuple[dict[str, pa.Array], npt.NDArray[np.uint32]]:
        """As `publish`, for a single record: nothing is built that was built before."""
        codes = {name: climb.few(batch.column(name))[0] for name, climb in self._climbs.items()}
        columns = {name: self._climbs[name].label(codes[name]) for name in self._leveled}
        by = tuple(codes[climb.name] for climb in self._by)
        key = (*by, *(climb.age for climb in self._by))
        row = self._single.get(key)
        if row is None:
            if len(self._single) > _MOST:
                self._single.clear()
            row = self._single[key] = np.array([self._row(by)], dtype=np.uint32)
        return columns, row

    def _few(self, batch: pa.Table) -> tuple[dict[str, pa.Array], npt.NDArray[np.uint32]]:
        """As `publish`, record by record: for these arrays of numbers cost more than the climb."""
        codes = {name: climb.few(batch.column(name)) for name, climb in self._climbs.items()}
        columns = {name: self._climbs[name].few_labels(codes[name]) for name in self._leveled}
        by = [codes[name] for name in self._levels.by]
        records = zip(*by, strict=True) if by else [()] * batch.num_rows
        return columns, np.array([self._row(record) for record in records], dtype=np.uint32)

    def _rows(self, size: int, codes: list[npt.NDArray[np.int32]]) -> npt.NDArray[np.uint32]:
        shape = tuple(len(climb) for climb in self._by)
        key = np.zeros(size, dtype=np.int64)
        for column, width in zip(codes, shape, strict=True):
            key = key * width + column
        if np.prod(shape, dtype=float) > _TABLE:
            keys, inverse = np.unique(key, return_inverse=True)
            return np.array([self._row(_split(k, shape)) for k in keys.tolist()], dtype=np.uint32)[inverse]
        codes_of = [(len(climb), climb.age) for climb in self._by]
        if codes_of != self._made_for:
            self._made_for, self._table = codes_of, np.full(int(np.prod(shape)), -1, dtype=np.int64)
        rows = self._table[key]
        strange = rows < 0
        if strange.any():
            for k in np.unique(key[strange]).tolist():
                self._table[k] = self._row(_split(k, shape))
            rows = self._table[key]
        return rows.astype(np.uint32)

    def _row(self, codes: tuple[int, ...]) -> int:
        return self._levels.row(tuple(climb.nodes[code] for climb, code in zip(self._by, codes, strict=True)))


def _text(column: pa.ChunkedArray | pa.Array) -> Any:
    return column if column.type is _TEXT or column.type == _TEXT else column.cast(_TEXT)


def _split(key: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The codes that a key was made of."""
    codes = []
    for width in reversed(shape):
        key, code = divmod(key, width)
        codes.append(code)
    return tuple(reversed(codes))


class _Climb:
    """One column: codes of raw values, what is published in their place, and the nodes above them."""

    def __init__(self, name: str, levels: Levels) -> None:
        self.name, self._levels = name, levels
        self.age = 0
        """How often everything was forgotten: codes of one age mean the same."""
        self._forget()

    def _forget(self) -> None:
        self.age += 1
        self._values = Values([])
        self._labels: list[str | None] = []
        self._array: pa.Array | None = None
        self._singles: dict[int, pa.Array] = {}
        self.nodes: list[frozenset[str]] = []

    def __len__(self) -> int:
        return len(self._labels)

    def encode(self, column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Codes of raw values; new ones are climbed."""
        if len(self) > _MOST:
            self._forget()
        codes = self._values.encode(_text(native(column)))
        self._learn(self._values.labels[len(self) :])
        return codes

    def few(self, column: pa.ChunkedArray) -> list[int]:
        """As `encode`, for a handful of values."""
        if len(self) > _MOST:
            self._forget()
        codes = [self._values.code(value) for value in _text(column).to_pylist()]
        if len(self._values) > len(self):
            self._learn(self._values.labels[len(self) :])
        return codes

    def few_labels(self, codes: list[int]) -> pa.Array:
        """As `labels`, for a handful of codes."""
        return pa.array([self._labels[code] for code in codes], pa.string())

    def label(self, code: int) -> pa.Array:
        """As `labels`, for a single code."""
        array = self._singles.get(code)
        if array is None:
            array = self._singles[code] = self.few_labels([code])
        return array

    def labels(self, codes: npt.NDArray[np.int32]) -> pa.Array:
        """What is published."""
        if self._array is None or len(self._array) < len(self):
            self._array = pa.array(self._labels, pa.string())
        return self._array.take(pa.array(codes))

    def _learn(self, values: list[str | None]) -> None:
        if not values:
            return
        try:
            self._climb(values)
        except DataError:  # one of them is outside the hierarchy
            for value in values:
                try:
                    self._climb([value])
                except DataError:  # it is published as `*`, and no reason to stop a stream
                    self._labels.append(ROOT)
                    self.nodes.append(frozenset([ROOT]))

    def _climb(self, values: list[str | None]) -> None:
        level, rungs = self._levels.rungs(self.name, pa.array(values, pa.string()))
        names = rungs.labels[level].cast(pa.string()).to_pylist()
        self._labels += [names[node] for node in rungs.tables[level].tolist()]
        self.nodes += above_of(rungs, level)
