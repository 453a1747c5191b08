"""Snapshots of evolving tables: codes and dictionaries as they are, so that everything goes on exactly alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from reticent.encode import Dictionary
from reticent.engine.snapshot import pack, unpack
from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.engine.evolving.base import EvolvingPublisher

P = TypeVar("P", bound="EvolvingPublisher")


def save(publisher: EvolvingPublisher) -> bytes:
    """All live rows, the dictionaries in the order of their codes, and what the method keeps."""
    records = publisher.records
    rows = records.rows()
    fields: dict[str, Any] = {
        "row": rows,
        "person": pa.array([records.persons[row] for row in rows.tolist()], pa.string()),
        "name": pa.array([records.names[row] for row in rows.tolist()], pa.string()),
        "class": records.classes[rows],
    }
    fields |= {f"code {i}": records.codes[rows, i] for i in range(len(records.columns))}
    fields |= {f"hash {i}": records.hashes[rows, i] for i in range(3)}
    tables = {"records": pa.table(fields)}
    tables |= {f"words {i}": pa.table({"value": records.words[name].values}) for i, name in enumerate(records.columns)}
    people = publisher.memories()
    tables["people"] = pa.table(
        {"key": pa.array(list(people), pa.string()), "memory": pa.array(list(people.values()), pa.binary())}
    )
    blobs = {"shown": records.shown[rows].tobytes()}
    return pack(publisher.policy, publisher.rng, publisher.extra(), tables, blobs)


def load(cls: type[P], policy: Policy, state: bytes) -> P:
    """A publisher as it was when `save` was called."""
    rng, extra, tables, blobs = unpack(policy, state)
    publisher = cls(policy, rng=rng)
    records, held = publisher.records, tables["records"]
    for i, name in enumerate(records.columns):
        records.words[name] = Dictionary(tables[f"words {i}"].column("value").combine_chunks())
    rows = held.column("row").to_numpy().astype(np.uint32)
    names = held.column("name")
    records.load(rows, held.column("person").to_pylist(), None if names.null_count else names.to_pylist())
    for i in range(len(records.columns)):
        records.codes[rows, i] = held.column(f"code {i}").to_numpy()
    for i in range(3):
        records.hashes[rows, i] = held.column(f"hash {i}").to_numpy()
    records.classes[rows] = held.column("class").to_numpy()
    records.shown[rows] = np.frombuffer(blobs["shown"], np.uint8).reshape(len(rows), records.shown.shape[1])
    people = tables["people"]
    publisher.recall(dict(zip(people.column("key").to_pylist(), people.column("memory").to_pylist(), strict=True)))
    publisher.resume(extra)
    return publisher
