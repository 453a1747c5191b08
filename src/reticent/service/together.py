"""Batches of one group as one: what a batch costs beside its records is paid once for all that wait together.

A batch keeps its place, its key and its answer. The engine, the judge and the ledger see the records of all of them in the order
they came, as they would one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from reticent.publication.records import Batch

_KIND, _GROUP, _END = len(b'{"type":"'), ord("g"), ord("\n")
"""Where a line says what it is; a group, which opens before its first record, begins with a letter of its own."""


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches without a bad record, one behind the other."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
    typed = {name for batch in batches for name in batch.tokens}
    tokens = {name: pa.concat_arrays([batch.token_column(name) for batch in batches]) for name in typed}
    return Batch(table, np.arange(table.num_rows), table.num_rows, tokens=tokens)


def parted(lines: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The lines of batches of these sizes, with the groups that their records open; nothing where records are held back."""
    if len(sizes) == 1 or not lines:
        return [lines, *[b""] * (len(sizes) - 1)]
    text = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(text == _END) + 1
    starts = np.concatenate([[0], ends[:-1]])
    records = ends[text[starts + _KIND] != _GROUP]
    cuts = [0, *records[np.cumsum(sizes) - 1].tolist()]
    return [lines[start:end] for start, end in pairwise(cuts)]
