"""Writes the lines of a stream for every interface: groups, tuples and veiled records in the core, generalized records with orjson."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s
from reticent.encode.columns import to_native
from reticent.errors import CORRUPT_HINT, StateError
from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.engine.stream.base import PlacedBatch
    from reticent.engine.stream.records import PublishedColumn
    from reticent.publication.records import Batch

_TEXT, _NUMBER, _TOKEN = 0, 1, 2
"""How the core writes the cells of a column: as text, as numbers where they look like numbers, or as JSON tokens."""
# Lines compress about sixfold at a gigabyte a second, and the store writes every byte twice.
_MIN_COMPRESS_SIZE = 4_096


class LineWriter:
    """Writes the batches that an engine has placed as lines."""

    def __init__(self, policy: Policy) -> None:
        self._quasi, self._plain = policy.quasi, policy.plain
        self._sensitive = policy.sensitive[0]
        self._names = [*policy.quasi, *policy.plain]
        self._core = _core.stream.LineWriter(self._names, len(policy.quasi))
        self._labels = 0

    def write_batch(self, batch: Batch, placed: PlacedBatch) -> bytes:
        """Return the lines of a batch's own records. Unchanged cells keep their JSON type."""
        if len(placed.labels) != self._labels:
            self._core.set_labels([orjson.dumps(label) for label in placed.labels])
            self._labels = len(placed.labels)
        if placed.groups is not None:
            arrays, forms, _ = self._columns(batch, {})
            return self._core.write(arrays, forms, placed.seqs, placed.groups.groups, placed.groups[1:])
        if placed.veiled is not None:
            veiled = placed.veiled
            arrays, forms, codes = self._columns(batch, veiled.published)
            return self._core.write_veil(
                arrays, forms, codes, placed.seqs, veiled.strata, veiled.events, veiled.candidates, veiled.pseudonyms
            )
        return b""

    def _columns(
        self, batch: Batch, replacements: Mapping[str, PublishedColumn]
    ) -> tuple[list[Any], list[int], list[Int32s | None]]:
        """Return the original cells, or labels and codes for the columns that the engine replaced."""
        arrays, forms = [], []
        for name in self._names:
            if name in replacements:
                forms.append(_TEXT)
                column = replacements[name].labels.array
            else:
                forms.append(_json_form(batch, name))
                column = batch.tokens.get(name, batch.table.column(name))
            arrays.append(to_native(column).__arrow_c_array__())
        return arrays, forms, [replacements[name].codes if name in replacements else None for name in self._names]

    def write_records(self, placed: PlacedBatch) -> bytes:
        """Return the lines of generalized records. Their plain cells are JSON tokens already."""
        if placed.records is None:
            return b""
        return b"".join(map(self._write_record, placed.records.to_pylist()))

    def _write_record(self, row: dict[str, str | int | None]) -> bytes:
        line: dict[str, object] = {"type": "record", "seq": row["seq"]}
        line |= {"quasi": {name: row[name] for name in self._quasi}, "sensitive": row[self._sensitive]}
        if self._plain:
            cells = {name: row[name] for name in self._plain}
            line["plain"] = {name: None if cell is None else orjson.Fragment(str(cell)) for name, cell in cells.items()}
        return orjson.dumps(line) + b"\n"


def _json_form(batch: Batch, name: str) -> int:
    if name in batch.tokens:
        return _TOKEN
    return _NUMBER if name in batch.numbers else _TEXT


def compress_lines(lines: bytes) -> tuple[str, bytes]:
    """Return the kind and the bytes under which the outbox stores lines."""
    if len(lines) < _MIN_COMPRESS_SIZE:
        return "ndjson", lines
    return "ndjson+lz4", len(lines).to_bytes(8, "little") + pa.compress(lines, codec="lz4", asbytes=True)


def decompress_lines(kind: str, payload: bytes) -> bytes:
    """Return the lines of an outbox entry."""
    if kind == "ndjson":
        return payload
    try:
        size = int.from_bytes(payload[:8], "little")
        return bytes(pa.decompress(payload[8:], decompressed_size=size, codec="lz4", asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        raise StateError("A stored batch of the stream is corrupt.", hint=CORRUPT_HINT) from None
