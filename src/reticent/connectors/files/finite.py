"""NaN and infinity are refused: they compare with nothing, so no group and no guarantee can be built on them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import DataError


def check_finite(table: pa.Table | pa.RecordBatch, *, name: str = "data") -> None:
    """Raise `DataError` when a floating-point column holds NaN or an infinity; null is fine.

    >>> check_finite(pa.table({"weight": [61.5, None]}))
    """
    for field in table.schema:
        if not pa.types.is_floating(field.type):
            continue
        strange = pc.sum(pc.invert(pc.is_finite(table[field.name]))).as_py()
        if strange:
            raise DataError(
                f"{name}: column {field.name!r} has {strange} cells that are NaN or infinite.",
                hint="Write missing numbers as null (an empty cell), and remove the others.",
            )
