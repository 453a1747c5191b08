"""Conversion of releases to plain dicts and to bytes, for manifests, stores and HTTP answers."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from reticent.errors import CORRUPT_HINT, StateError
from reticent.release.release import Guarantee, RecordCounts, Release


def to_dict(release: Release) -> dict[str, Any]:
    """Return a release without its tables as plain values."""
    return {
        "kind": release.kind,
        "shape": release.shape,
        "method": release.method,
        "policy_hash": release.policy_hash,
        "guarantee": asdict(release.guarantee) | {"claims": dict(release.guarantee.claims)},
        "records": asdict(release.records),
        "metrics": dict(release.metrics),
        "explain": dict(release.explain),
        "seeded": release.seeded,
    } | ({} if release.store is None else {"store": dict(release.store)})


def from_dict(
    plain: Mapping[str, Any], tables: Mapping[str, pa.Table], metadata: Mapping[str, Mapping[str, Any]]
) -> Release:
    """Build a release from a dict of `to_dict` and its tables; ignore other keys."""
    guarantee = plain["guarantee"]
    return Release(
        kind=plain["kind"],
        shape=plain["shape"],
        method=plain["method"],
        tables=tables,
        guarantee=Guarantee(guarantee["claims"], guarantee["against"], tuple(guarantee["not_covered"])),
        records=RecordCounts(**plain["records"]),
        policy_hash=plain["policy_hash"],
        metrics=plain["metrics"],
        explain=plain["explain"],
        seeded=plain["seeded"],
        metadata=metadata,
        store=plain.get("store"),
    )


def to_bytes(release: Release) -> bytes:
    """Serialize a release with its tables; a store keeps these bytes and sends them again after a crash."""
    parts = {name: table_bytes(table) for name, table in release.tables.items()}
    head = to_dict(release) | {
        "metadata": dict(release.metadata),
        "tables": [(name, len(data)) for name, data in parts.items()],
    }
    text = json.dumps(head).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *parts.values()])


def from_bytes(data: bytes) -> Release:
    """Read a release that `to_bytes` wrote."""
    try:
        (length,) = struct.unpack("<Q", data[:8])
        head = json.loads(data[8 : 8 + length])
        at, tables = 8 + length, {}
        for name, size in head["tables"]:
            tables[name] = table_from_bytes(data[at : at + size])
            at += size
        return from_dict(head, tables, head["metadata"])
    except (struct.error, ValueError, KeyError, TypeError, pa.ArrowException):
        raise StateError("A stored release is corrupt.", hint=CORRUPT_HINT) from None


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_from_bytes(data: bytes) -> pa.Table:
    """Read a table that `table_bytes` wrote; refuse one that fails Arrow's full validation."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError):
        raise StateError("A stored table is corrupt.", hint=CORRUPT_HINT) from None
    return table


def table_digest(table: pa.Table) -> str:
    """Return a digest of the rows in their order, independent of the chunks of the table."""
    return hashlib.sha256(table_bytes(table.combine_chunks())).hexdigest()
