"""Snapshots as bytes: a JSON header that names the policy, then Arrow tables."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa

from reticent.engine.rng import Rng
from reticent.errors import CORRUPT_HINT, StateError
from reticent.policy import Policy
from reticent.release.codec import table_bytes, table_from_bytes

_MAGIC = b"RTSN1\n"


def pack(
    policy: Policy,
    rng: Rng,
    state: dict[str, Any],
    tables: dict[str, pa.Table] | None = None,
    blobs: dict[str, bytes] | None = None,
) -> bytes:
    """Pack plain values, tables and blobs into bytes."""
    parts = {name: table_bytes(table) for name, table in (tables or {}).items()}
    order = [("table", name, len(data)) for name, data in parts.items()] + [
        ("blob", name, len(data)) for name, data in (blobs or {}).items()
    ]
    header = {
        "policy": policy.hash,
        "secret": rng.secret.hex(),
        "seeded": rng.seeded,
        "veil_key": rng.veil_secret.hex(),
        "state": state,
        "parts": order,
    }
    text = json.dumps(header).encode()
    return b"".join([_MAGIC, struct.pack("<Q", len(text)), text, *parts.values(), *(blobs or {}).values()])


def unpack(policy: Policy, data: bytes) -> tuple[Rng, dict[str, Any], dict[str, pa.Table], dict[str, bytes]]:
    """Read the bytes of `pack`; refuses corrupt snapshots and those of another policy."""
    try:
        if not data.startswith(_MAGIC):
            raise ValueError
        start = len(_MAGIC) + 8
        (length,) = struct.unpack("<Q", data[len(_MAGIC) : start])
        header = json.loads(data[start : start + length])
        at, tables, blobs = start + length, {}, {}
        for kind, name, size in header["parts"]:
            part, at = data[at : at + size], at + size
            if len(part) < size:
                raise ValueError
            if kind == "table":
                tables[name] = table_from_bytes(part)
            else:
                blobs[name] = part
    except (ValueError, KeyError, TypeError, struct.error, pa.ArrowException):
        raise StateError("The snapshot is corrupt.", hint=CORRUPT_HINT) from None
    if header["policy"] != policy.hash:
        raise StateError("The snapshot was made under another policy.", hint="Use the policy of the snapshot.")
    rng = Rng(bytes.fromhex(header["secret"]), seeded=header["seeded"], veil_secret=bytes.fromhex(header["veil_key"]))
    return rng, header["state"], tables, blobs
