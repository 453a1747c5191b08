"""The transcript of a stream as numbers: which tuple joined which group when, and what each group offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from reticent.arrays import Bools, Int64s
from reticent.verify.published import Published, cell_text
from reticent.verify.stream.lines import iter_table_lines


@dataclass(frozen=True, repr=False)
class Transcript:
    """Tuples in order of release.

    Attributes:
        group: the group of each tuple.
        opens: whether the tuple is the first of its group.
        seq: the position of the tuple in the input.
        quasi: a number per combination of quasi-identifiers.
        slots: per group and slot, the code of the value that it offers; -1 beyond the last slot.
        values: the text of each code.
    """

    group: Int64s
    opens: Bools
    seq: Int64s
    quasi: Int64s
    slots: Int64s
    values: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.group)


def read_transcript(releases: Iterable[Published], limit: int) -> Transcript:
    """Read the first `limit` tuples of a stream that was released in one or several parts."""
    offered: dict[str, list[Any]] = {}
    group: list[int] = []
    numbers: dict[str, int] = {}
    seq, quasi, keys = [], [], dict[bytes, int]()
    for line in iter_lines(releases):
        if len(group) >= limit:
            break
        if line.get("type") == "group":
            offered[str(line["group"])] = line["candidates"]
        elif line.get("type") == "tuple":
            name = str(line["group"])
            group.append(numbers.setdefault(name, len(numbers)))
            seq.append(int(line["seq"]))
            quasi.append(keys.setdefault(orjson.dumps(line["quasi"], option=orjson.OPT_SORT_KEYS), len(keys)))
    return _assemble([offered.get(name, []) for name in numbers], group, seq, quasi)


def stream_table(release: Published) -> pa.Table:
    """Return the quasi-identifiers and plain columns of a stream as text, with one row per tuple or record."""
    columns: dict[str, list[str | None]] = {}
    rows = 0
    for line in iter_lines([release]):
        if line.get("type") not in ("tuple", "record"):
            continue
        shown = {**line.get("quasi", {}), **(line.get("plain") or {})}
        for name, value in shown.items():
            columns.setdefault(name, [None] * rows).append(cell_text(value))
        rows += 1
        for values in columns.values():
            values.extend([None] * (rows - len(values)))
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _assemble(candidates: list[list[Any]], group: list[int], seq: list[int], quasi: list[int]) -> Transcript:
    codes: dict[str | None, int] = {}
    lists = [
        [codes.setdefault(cell_text(v), len(codes)) for v, n in pairs for _ in range(int(n))] for pairs in candidates
    ]
    slots = np.full((len(lists), max((len(row) for row in lists), default=0)), -1, dtype=np.int64)
    for row, values in enumerate(lists):
        slots[row, : len(values)] = values
    members = np.array(group, dtype=np.int64)
    opens = np.zeros(len(members), dtype=np.bool_)
    opens[np.unique(members, return_index=True)[1]] = True
    return Transcript(
        members, opens, np.array(seq, dtype=np.int64), np.array(quasi, dtype=np.int64), slots, tuple(codes)
    )


def iter_lines(releases: Iterable[Published]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a stream as objects, from its files or tables."""
    for release in releases:
        if release.stream_file is not None:
            with release.stream_file.open("rb") as file:
                yield from (orjson.loads(line) for line in file if line.strip())
        else:
            yield from sorted(iter_table_lines(release), key=lambda line: int(line.get("seq", -1)))
