"""Lines of a stream, written in one way for every door: groups, tuples and veiled records natively, generalised records by orjson."""

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
"""What the text of a column is to the core: text, a number where it is written as one, JSON already."""
# Lines compress about sixfold at a gigabyte a second, and the store writes every byte twice.
_MIN_COMPRESS_SIZE = 4_096


class LineWriter:
    """Writes what an engine has placed."""

    def __init__(self, policy: Policy) -> None:
        self._quasi, self._plain = policy.quasi, policy.plain
        self._sensitive = policy.sensitive[0]
        self._names = [*policy.quasi, *policy.plain]
        self._core = _core.stream.LineWriter(self._names, len(policy.quasi))
        self._labels = 0

    def write_batch(self, batch: Batch, placed: PlacedBatch) -> bytes:
        """The lines of a batch's own records; cells that are released as they came have the JSON type they came with."""
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
        """Cells as they came, or labels and their codes where something else is released."""
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
        """The lines of generalised records; plain cells are JSON already, as the engine was given them."""
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
    """Lines as the outbox keeps them: the kind, and the bytes."""
    if len(lines) < _MIN_COMPRESS_SIZE:
        return "ndjson", lines
    return "ndjson+lz4", len(lines).to_bytes(8, "little") + pa.compress(lines, codec="lz4", asbytes=True)


def decompress_lines(kind: str, payload: bytes) -> bytes:
    """The lines of an entry of the outbox."""
    if kind == "ndjson":
        return payload
    try:
        size = int.from_bytes(payload[:8], "little")
        return bytes(pa.decompress(payload[8:], decompressed_size=size, codec="lz4", asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        raise StateError("A stored batch is damaged.", hint=CORRUPT_HINT) from None
