"""Tables and whole releases as bytes: what a store keeps and sends again after a crash."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict

import pyarrow as pa

from reticent.errors import StateError
from reticent.release.release import Counts, Guarantee, Release


def to_bytes(release: Release) -> bytes:
    """All of a release."""
    parts = {name: table_bytes(table) for name, table in release.tables.items()}
    head = {
        "kind": release.kind,
        "method": release.method,
        "guarantee": asdict(release.guarantee) | {"claims": dict(release.guarantee.claims)},
        "counts": asdict(release.counts),
        "policy_hash": release.policy_hash,
        "metrics": dict(release.metrics),
        "explain": dict(release.explain),
        "seeded": release.seeded,
        "tables": [(name, len(data)) for name, data in parts.items()],
    }
    text = json.dumps(head).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *parts.values()])


def from_bytes(data: bytes) -> Release:
    """Reads what `to_bytes` wrote."""
    try:
        (length,) = struct.unpack("<Q", data[:8])
        head = json.loads(data[8 : 8 + length])
        at, tables = 8 + length, {}
        for name, size in head.pop("tables"):
            tables[name] = table_from(data[at : at + size])
            at += size
        guarantee = head.pop("guarantee")
        return Release(
            tables=tables,
            guarantee=Guarantee(guarantee["claims"], guarantee["against"], tuple(guarantee["not_covered"])),
            counts=Counts(**head.pop("counts")),
            **head,
        )
    except (struct.error, ValueError, KeyError, TypeError, pa.ArrowException):
        raise StateError("A stored release is damaged.", hint="Restore the store from a backup.") from None


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_from(data: bytes) -> pa.Table:
    """Reads what `table_bytes` wrote."""
    return pa.ipc.open_stream(data).read_all()


def digest(table: pa.Table) -> str:
    """The same for the same rows in the same order, however they are cut."""
    return hashlib.sha256(table_bytes(table.combine_chunks())).hexdigest()
