"""Releases as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from reticent import _core
from reticent.engine.stream.records import native
from reticent.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reticent.engine.stream.immediate import Placed
    from reticent.engine.stream.records import Records
    from reticent.engine.stream.values import Values
    from reticent.policy import Policy
    from reticent.release import Release


# Lines compress about sixfold at a gigabyte a second, and the store writes every byte twice.
_WORTH_PACKING = 4_096


def pack(payload: bytes) -> tuple[str, bytes]:
    """Lines as the outbox keeps them: the kind, and the bytes."""
    if len(payload) < _WORTH_PACKING:
        return "ndjson", payload
    return "ndjson+lz4", len(payload).to_bytes(8, "little") + pa.compress(payload, codec="lz4", asbytes=True)


def unpacked(kind: str, payload: bytes) -> bytes:
    """The lines of an entry of the outbox."""
    if kind == "ndjson":
        return payload
    try:
        size = int.from_bytes(payload[:8], "little")
        return bytes(pa.decompress(payload[8:], decompressed_size=size, codec="lz4", asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        raise StateError("A stored batch is damaged.", hint="Restore the store from a backup.") from None


class Wire:
    """Writes the lines of `sealed` and `delay-free` natively."""

    def __init__(self, policy: Policy, numeric: Iterable[str]) -> None:
        self._names = [*policy.quasi, *policy.plain]
        numbers = set(numeric)
        self._lines = _core.stream.Lines(self._names, [name in numbers for name in self._names], len(policy.quasi))
        self._labels = 0

    def lines(
        self,
        table: pa.Table,
        records: Records,
        placed: Placed,
        values: Values,
        typed: Mapping[str, pa.Array] | None = None,
    ) -> bytes:
        """The lines of one placed batch, each group before its first record; `typed` columns go out with their types."""
        if len(values) > self._labels:
            self._lines.set_labels(values.json())
            self._labels = len(values)
        typed = typed or {}
        columns = [native(typed.get(name, table.column(name))).__arrow_c_array__() for name in self._names]
        opened = (placed.opened, placed.at, placed.offsets, placed.codes, placed.counts)
        return self._lines.write(columns, records.seqs, placed.groups, opened)


def record_lines(releases: list[Release], policy: Policy, numeric: Iterable[str]) -> bytes:
    """The lines of generalised records."""
    numbers = set(numeric) & set(policy.plain)
    (sensitive,) = policy.sensitive
    out = []
    for release in releases:
        for row in release.tables["record"].to_pylist():
            line = {"type": "record", "seq": row["seq"], "qi": {name: row[name] for name in policy.quasi}}
            line["sensitive"] = row[sensitive]
            if policy.plain:
                line["plain"] = {name: _number(row[name]) if name in numbers else row[name] for name in policy.plain}
            out.append(orjson.dumps(line))
    return b"".join(line + b"\n" for line in out)


def _number(cell: object) -> object:
    try:
        return orjson.loads(cell) if isinstance(cell, str) else cell
    except orjson.JSONDecodeError:
        return cell
