"""Run one stream on many machines: each shard is a complete publication of its own persons.

Guarantee: per shard as for the stream's method and against its attacker, without coordination. Under the veil, a person
    belongs to one shard, which remembers the person; all shards have the same parameter set (veil key, l, prior,
    kernel).
Not covered: the method's own exclusions. The number of shards of a veiled stream is fixed: a person who moved to
    another shard would have a second first event there and be veiled twice.
Cost: the method's journal per shard and batch, about 24 bytes per record.
Reference: ours.
Differences from the single machine: `seq` is the position in the shard's input; delay-free groups fill more slowly,
    because a record can only join groups of its own shard.
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
    """Refuse methods that delay records."""
    if policy.stream.method == "castle":
        raise PolicyError(
            "CASTLE delays records and cannot run in shards.",
            hint="Write stream: {method: veil}, or run it on one machine.",
        )


def pin_shards(policy: Policy, store: Store, name: str, shards: int) -> None:
    """Fix the number of shards of a method that remembers persons; refuse another number later."""
    if not stream_class(policy.stream.method).remembers_persons:
        return
    with store.transaction() as tx:
        pinned = tx.get(name, _SHARDS, _SHARDS)
        if pinned is None:
            tx.put(name, _SHARDS, _SHARDS, str(shards).encode())
    if pinned is not None and int(pinned) != shards:
        raise StateError(
            f"The stream started with {int(pinned)} shards and now has {shards}: persons who move to another shard "
            "would be veiled twice.",
            hint="Use the original number of shards.",
        )


def claim_population(policy: Policy, store: Store, name: str, *, allow_republication: bool = False) -> bool:
    """Claim the whole population for a sharded stream, not in the ledger; return whether others share the store."""
    population = Population(
        store, name, policy, kind="stream", method=policy.stream.method, allow_republication=allow_republication
    )
    population.claim_everybody()
    return population.shared > 0


def assign_shards(batch: Batch, person: str | None, shards: int, key: bytes) -> npt.NDArray[np.int32]:
    """Return the shard of every record (rejected: 0); without a person column, the whole record is hashed."""
    columns = [batch.table.column(name) for name in ([person] if person else batch.table.column_names)]
    keys = columns[0] if person else pc.binary_join_element_wise(*(pc.fill_null(c, "") for c in columns), "\x1f")
    names = keys.combine_chunks().dictionary_encode()
    shard_numbers = np.array([shard_of(name, shards, key) for name in names.dictionary.to_pylist()], dtype=np.int32)
    numbers = np.zeros(batch.total, dtype=np.int32)
    if len(shard_numbers):
        numbers[batch.rows] = shard_numbers[names.indices.to_numpy()]
    return numbers


def shard_of(person: str, shards: int, key: bytes) -> int:
    """Return the shard of a person: a keyed hash, so that an attacker cannot choose the shard of a person."""
    digest = hashlib.blake2b(person.encode(), digest_size=8, key=key, person=b"reticent shard").digest()
    return int.from_bytes(digest, "little") % shards
