"""A release as one string of bytes, for the outbox: what the store sends again after a crash."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict

import pyarrow as pa

from reticent.release import Counts, Guarantee, Release


def wrap(release: Release) -> bytes:
    """All of a release."""
    guarantee = release.guarantee
    head = {
        "kind": release.kind,
        "method": release.method,
        "guarantee": [dict(guarantee.claims), guarantee.against, list(guarantee.not_covered)],
        "counts": asdict(release.counts),
        "policy_hash": release.policy_hash,
        "metrics": dict(release.metrics),
        "explain": dict(release.explain),
        "seeded": release.seeded,
        "tables": list(release.tables),
    }
    parts = [json.dumps(head).encode(), *(_ipc(table) for table in release.tables.values())]
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def unwrap(data: bytes) -> Release:
    """What `wrap` packed."""
    parts, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        parts.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    head = json.loads(parts[0])
    claims, against, not_covered = head.pop("guarantee")
    tables = dict(zip(head.pop("tables"), (pa.ipc.open_stream(part).read_all() for part in parts[1:]), strict=True))
    counts = Counts(**head.pop("counts"))
    return Release(tables=tables, guarantee=Guarantee(claims, against, tuple(not_covered)), counts=counts, **head)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
