"""The sensitive values of a stream: labels, their codes, and the order in which groups list them.

A feed cannot be sent back for correction: where groups count different values, another spelling of one is read as the
spelling that came first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s

if TYPE_CHECKING:
    from reticent.engine.spellings import Spellings
    from reticent.engine.stream.design import Label


class Values:
    """Grows as new values come in; a code never changes.

    Example:
        >>> values = Values(["flu", "asthma"])
        >>> values.encode(pa.array(["asthma", None])).tolist(), len(values)
        ([1, 2], 3)
        >>> values.rank.tolist()
        [2, 1, 0]
    """

    def __init__(self, labels: Iterable[Label], *, spellings: Spellings | None = None) -> None:
        self.labels: list[Label] = list(labels)
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self._spellings = spellings
        for label in self.labels:
            self._first(label)
        self._array: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Values({len(self)} labels)"

    def code(self, label: Label) -> int:
        """The code of a label; a new one gets the next free code."""
        code = self._codes.get(label)
        if code is None:
            first = self._first(label)
            code = self._codes[label] = self._codes[first] if first in self._codes else self._add(label)
        return code

    def _first(self, label: Label) -> Label:
        return label if self._spellings is None else self._spellings.first(label)

    def _add(self, label: Label) -> int:
        self.labels.append(label)
        self._array = None
        return len(self.labels) - 1

    def encode(self, column: pa.Array) -> Int32s:
        """The codes of a column of text."""
        if len(column) == 1:
            return np.array([self.code(column[0].as_py())], dtype=np.int32)
        coded = column.dictionary_encode(null_encoding="encode")
        table = np.array([self.code(label) for label in coded.dictionary.to_pylist()], dtype=np.int32)
        codes: Int32s = table[coded.indices.to_numpy()]
        return codes

    @property
    def array(self) -> pa.Array:
        """The labels by code."""
        if self._array is None:
            self._array = pa.array(self.labels, pa.string())
        return self._array

    @property
    def rank(self) -> UInt32s:
        """The place of every code in the published order; a missing value comes first."""
        return self.rank_of(len(self))

    def rank_of(self, size: int) -> UInt32s:
        """The places of the first codes, among themselves."""
        order = sorted(range(size), key=lambda code: self.labels[code] or "")
        rank = np.empty(size, dtype=np.uint32)
        rank[order] = np.arange(size, dtype=np.uint32)
        return rank
