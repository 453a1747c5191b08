"""Records of a stream under the veil on codes: persons, values, published fields each at its level, and rows of the prior.

What was climbed once is remembered, up to a bound: a column of ever new values costs time, not memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s
from reticent.encode.names import single_names
from reticent.encode.native import native
from reticent.engine.stream.records import NativeBatches
from reticent.engine.veil.house import House
from reticent.engine.veil.levels import PublishedLevels
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT

Climbed = tuple[str | None, frozenset[str]]
"""A label, and itself with all labels above it."""

_MOST = 1 << 16
# New values are taught, then new combinations of their labels; whatever is still strange then is no text.
_LESSONS = 3


class Labels:
    """What is published of one column, by code."""

    def __init__(self, name: str, levels: PublishedLevels) -> None:
        self.name, self._levels = name, levels
        self._codes: dict[Climbed, int] = {}
        self.nodes: list[frozenset[str]] = []
        """Per code its label and the labels above it."""
        self._array = pa.array([], pa.string())

    @property
    def array(self) -> pa.Array:
        """The labels; those that are learned later stand behind them."""
        if len(self._array) < len(self._codes):
            self._array = pa.array([label for label, _ in self._codes], pa.string())
        return self._array

    def learn(self, values: Sequence[str | None]) -> list[int]:
        """The codes of raw values."""
        return [self._code(climbed) for climbed in self._climb(values)]

    def _code(self, climbed: Climbed) -> int:
        code = self._codes.setdefault(climbed, len(self._codes))
        if code == len(self.nodes):
            self.nodes.append(climbed[1])
        return code

    def _climb(self, values: Sequence[str | None]) -> list[Climbed]:
        try:
            return self._levels.climb(self.name, values)
        except DataError:  # one of them is outside the hierarchy
            if len(values) > 1:
                return [climbed for value in values for climbed in self._climb([value])]
            return [(ROOT, frozenset([ROOT]))]  # it is published as `*`, and no reason to stop a stream


class Leveled(NamedTuple):
    """A published column: the code of every record, and its labels."""

    codes: Int32s
    labels: Labels

    def __repr__(self) -> str:
        return f"Leveled({self.labels.name!r}, {len(self.codes)} records)"

    def array(self) -> pa.Array:
        """As it is published."""
        return self.labels.array.take(pa.array(self.codes))


Shown = list[tuple[int, Labels]]
"""Columns that are released otherwise than they came: the number of the field, and its labels."""


def leveled(coded: _core.stream.Coded, shown: Shown) -> dict[str, Leveled]:
    """The columns of a batch that are released otherwise than they came."""
    return {labels.name: Leveled(coded.field(number), labels) for number, labels in shown}


class Fields:
    """Reads batches under the key of the house."""

    def __init__(self, policy: Policy, house: House, key: bytes, *, unit: str | None = None) -> None:
        assert policy.person is not None  # noqa: S101 - the veil over a stream has refused it
        self._person, self._unit, self._house = policy.person, unit, house
        self._leveled = [name for name in policy.quasi if policy.columns[name].level > 0]
        self._fields = [*dict.fromkeys([*self._leveled, *house.levels.by])]
        self._by = [self._fields.index(name) for name in house.levels.by]
        self._read = [*self._fields, house.sensitive]
        self._batches = NativeBatches([*dict.fromkeys([*self._read, self._person, *([unit] if unit else [])])])
        self._at: dict[str, int] | None = None
        self._columns: tuple[int, list[int], int | None] = 0, [], None
        leading = [house.levels.leading(name) for name in self._fields]
        self._core = _core.stream.Coder(key, [*leading, None], self._by)
        self._forget()

    def _forget(self) -> None:
        self._core.forget()
        self._labels = [Labels(name, self._house.levels) for name in self._fields]
        self._shown: Shown = [
            (number, labels) for number, labels in enumerate(self._labels) if labels.name in self._leveled
        ]

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch came with this schema."""
        return self._batches.knows(schema)

    def read(self, batch: pa.Table, *, named: bool) -> tuple[_core.stream.Coded, Shown]:
        """The codes of a batch, the sensitive ones last, and what is shown of it; new values are climbed.

        `named` says that each person and unit is written in one way.
        """
        piece, at = self._batches.of(batch)
        if at is not self._at:
            fields, unit = [at[name] for name in self._read], at[self._unit] if self._unit else None
            self._at, self._columns = at, (at[self._person], fields, unit)
        capsules, columns = piece.__arrow_c_array__(), self._columns
        for lesson in range(_LESSONS):
            coded = self._core.read(capsules, *columns, named)
            if coded.whole:
                shown = self._shown
                if lesson and self._core.remembered() > _MOST:
                    self._forget()
                return coded, shown
            if coded.unnamed:
                return self.read(self._named(batch), named=True)
            self._refuse_missing(coded.missing)
            self._teach(coded)
        raise DataError("A column holds text that is not UTF-8.", hint="Convert the input to UTF-8.")

    def _named(self, batch: pa.Table) -> pa.Table:
        for name in (self._person, *([self._unit] if self._unit else [])):
            place = batch.schema.get_field_index(name)
            names = single_names(pa.chunked_array([native(batch.column(place))]))
            batch = batch.set_column(place, name, names)
        return batch

    def _teach(self, coded: _core.stream.Coded) -> None:
        for field, values in coded.strange:
            own = field < len(self._labels)
            codes = self._labels[field].learn(values) if own else self._house.domain.codes(values)
            self._core.learn(field, values, codes)
        for codes in coded.combinations:
            nodes = tuple(self._labels[field].nodes[code] for field, code in zip(self._by, codes, strict=True))
            self._core.learn_row(codes, self._house.levels.row(nodes))

    def _refuse_missing(self, missing: int) -> None:
        if missing:
            raise DataError(
                f"{missing:,} records have no '{self._person}'{f' or no {self._unit!r}' if self._unit else ''}.",
                hint="Every record needs its person: without it a returning person cannot be protected.",
            )
