"""A table as codes: one int32 array and one dictionary per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.encode.dictionary import Dictionary
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Encoded:
    """Columns as codes, with the dictionaries that decode them."""

    codes: dict[str, npt.NDArray[np.int32]]
    dictionaries: dict[str, Dictionary]

    def __len__(self) -> int:
        return len(next(iter(self.codes.values()))) if self.codes else 0

    def __repr__(self) -> str:
        return f"Encoded({len(self)} rows, columns {sorted(self.codes)})"


def encode_table(table: pa.Table, columns: Sequence[str]) -> Encoded:
    """Encodes some columns of a table."""
    dictionaries = {name: Dictionary() for name in columns}
    codes = {}
    for name in columns:
        try:
            codes[name] = dictionaries[name].encode(table.column(name))
        except DataError as error:
            raise DataError(f"Column '{name}': {error.message}", hint=error.hint) from None
    return Encoded(codes, dictionaries)
