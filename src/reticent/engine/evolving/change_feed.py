"""Change feeds: batches whose column `op` says what each row does, as change-data-capture tools write them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import pyarrow as pa

from reticent.errors import DataError

Op = Literal["insert", "update", "delete"]
COLUMN = "op"
# Full words, and the letters of Debezium (c, r, u, d) and of SQL Server (I, U, D).
WORDS: dict[str, Op] = {
    "insert": "insert",
    "i": "insert",
    "c": "insert",
    "r": "insert",
    "update": "update",
    "u": "update",
    "delete": "delete",
    "d": "delete",
}


def runs(batch: pa.Table) -> Iterator[tuple[Op, pa.Table]]:
    """The feed cut into stretches of one operation each, in order, without the column `op`."""
    words = [str(word).strip().lower() for word in batch.column(COLUMN).to_pylist()]
    unknown = sum(word not in WORDS for word in words)
    if unknown:
        raise DataError(
            f"{unknown:,} rows of the feed have an unknown operation in column '{COLUMN}'.",
            hint="Write insert, update or delete.",
        )
    ops = [WORDS[word] for word in words]
    rest = batch.drop_columns([COLUMN])
    if not ops:
        return
    starts = [0, *(i for i in range(1, len(ops)) if ops[i] != ops[i - 1]), len(ops)]
    for start, stop in pairwise(starts):
        yield ops[start], rest.slice(start, stop - start)
