"""Spark counts, one machine thinks: distinct combinations of some columns with how often each occurs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import DataFrame

MOST_COMBINATIONS = 50_000_000
"""What one machine takes; data with more distinct combinations is too fine for a full-domain release anyway."""
MOST_ROWS = 2**30

_RECORDS = "__records"


def collapse(frame: DataFrame, columns: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.uint32]]:
    """Every distinct combination once, in a stable order, and how many rows have it."""
    from pyspark.sql import functions as F  # noqa: N812 - the name every user of Spark knows

    counted = frame.groupBy(*[column(name) for name in columns]).agg(F.count(F.lit(1)).alias(_RECORDS))
    combinations = counted.limit(MOST_COMBINATIONS + 1).toArrow()
    if combinations.num_rows > MOST_COMBINATIONS:
        raise DataError(
            f"The data has more than {MOST_COMBINATIONS:,} distinct combinations of {', '.join(columns)}.",
            hint="Round the finest of these columns before the release.",
        )
    # The order in which groups arrive changes from run to run; ties in the search must not.
    combinations = combinations.sort_by([(name, "ascending") for name in columns])
    times = combinations.column(_RECORDS).to_numpy()
    if int(times.sum()) >= MOST_ROWS:
        raise DataError("The data has too many rows for one release.", hint="Release it in parts that share no person.")
    return combinations.drop_columns([_RECORDS]), times.astype(np.uint32)


def column(name: str) -> str:
    """A column's name as Spark parses it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
