"""Shards: one stream on many machines, each shard a whole publication of its own persons.

Guarantee: per shard that of the stream's method, without coordination. Under the veil a person belongs to one shard, which
    remembers her, and all shards have one house: the same key, l, prior and kernel.
Not covered: what the method does not cover. The number of shards of a stream under the veil is pinned: a person who moved to
    another shard would be met there for the first time, and veiled twice.
Cost: per shard and batch the journal of the method, about 24 bytes per record.
Reference: ours.
Differences from the single machine: `seq` is the position in the shard's input; delay-free groups fill more slowly, since a
    record can only join groups of its own shard.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from reticent.engine.stream.base import stream_class
from reticent.errors import PolicyError, StateError
from reticent.publication.population import Population

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.policy import Policy
    from reticent.publication.records import Batch
    from reticent.store import Store

MOST_SHARDS = 1 << 16
_SHARDS = "shards"


def check_shards(policy: Policy) -> None:
    """Refuses methods that hold records back."""
    if policy.stream.method == "castle":
        raise PolicyError(
            "CASTLE holds records back and does not run in shards.",
            hint="Write stream: {method: veil}, or run it on one machine.",
        )


def pin_shards(policy: Policy, store: Store, name: str, shards: int) -> None:
    """Refuses another number of shards where persons are remembered by the shard they were first seen in."""
    if not stream_class(policy.stream.method).remembers_persons:
        return
    with store.transaction() as tx:
        pinned = tx.get(name, _SHARDS, _SHARDS)
        if pinned is None:
            tx.put(name, _SHARDS, _SHARDS, str(shards).encode())
    if pinned is not None and int(pinned) != shards:
        raise StateError(
            f"The stream was begun with {int(pinned)} shards, and there are {shards} now: persons who move to another shard "
            "would be veiled twice.",
            hint="Go back to the number it was begun with.",
        )


def claim_population(policy: Policy, store: Store, name: str, *, allow_republication: bool = False) -> bool:
    """Takes everybody for a stream in shards, whose records the ledger does not see; whether others stand in the store, too."""
    population = Population(
        store, name, policy, kind="stream", method=policy.stream.method, allow_republication=allow_republication
    )
    population.claim_everybody()
    return population.shared > 0


def assign_shards(batch: Batch, person: str | None, shards: int, key: bytes) -> npt.NDArray[np.int32]:
    """The shard of every record of a read; those that were set aside have shard 0. Without a person the whole record is one."""
    columns = [batch.table.column(name) for name in ([person] if person else batch.table.column_names)]
    whole = columns[0] if person else pc.binary_join_element_wise(*(pc.fill_null(c, "") for c in columns), "\x1f")
    names = whole.combine_chunks().dictionary_encode()
    places = np.array([shard_of(name, shards, key) for name in names.dictionary.to_pylist()], dtype=np.int32)
    numbers = np.zeros(batch.total, dtype=np.int32)
    if len(places):
        numbers[batch.rows] = places[names.indices.to_numpy()]
    return numbers


def shard_of(person: str, shards: int, key: bytes) -> int:
    """The shard of a person: a keyed hash, so that nobody can aim persons at a shard."""
    digest = hashlib.blake2b(person.encode(), digest_size=8, key=key, person=b"reticent shard").digest()
    return int.from_bytes(digest, "little") % shards
