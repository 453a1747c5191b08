"""The sensitive values of a stream: labels, their codes, and the order in which groups list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

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

    def __init__(self, labels: Iterable[Label]) -> None:
        self.labels: list[Label] = list(labels)
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self._array: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Values({len(self)} labels)"

    def code(self, label: Label) -> int:
        """The code of a label; a new one gets the next free code."""
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self.labels)
            self.labels.append(label)
            self._array = None
        return code

    def encode(self, column: pa.Array) -> npt.NDArray[np.int32]:
        """The codes of a column of text."""
        if len(column) == 1:
            return np.array([self.code(column[0].as_py())], dtype=np.int32)
        coded = column.dictionary_encode(null_encoding="encode")
        table = np.array([self.code(label) for label in coded.dictionary.to_pylist()], dtype=np.int32)
        codes: npt.NDArray[np.int32] = table[coded.indices.to_numpy()]
        return codes

    @property
    def array(self) -> pa.Array:
        """The labels by code."""
        if self._array is None:
            self._array = pa.array(self.labels, pa.string())
        return self._array

    @property
    def rank(self) -> npt.NDArray[np.uint32]:
        """The place of every code in the published order; a missing value comes first."""
        return self.rank_of(len(self))

    def rank_of(self, size: int) -> npt.NDArray[np.uint32]:
        """The places of the first codes, among themselves."""
        order = sorted(range(size), key=lambda code: self.labels[code] or "")
        rank = np.empty(size, dtype=np.uint32)
        rank[order] = np.arange(size, dtype=np.uint32)
        return rank
