"""Shards: one stream on many machines, each shard a whole publication with groups of its own.

Guarantee: per shard that of the stream's method, without coordination: a shard sees its own records only and publishes
    groups that no other shard joins. Overall the same posterior bound, because the class of a (person, value) pair is one
    keyed function for all shards: a person who is seen by two shards, or who moves when shards are added, is published
    under one class for good (tests/attack/test_shard_adversary.py enumerates all inputs of a two-shard stream).
Not covered: what the method does not cover. Shards never redesign themselves (`epochs: auto` is taken as `fixed`): two
    shards with two designs would give a moved person two classes, which can be intersected. Drift raises an alarm only.
Cost: per shard and batch a journal of 28 bytes per record.
Reference: ours.
Differences from the single machine: `seq` is the position in the shard's input; groups fill more slowly, since a record
    can only join groups of its own shard.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from reticent.errors import PolicyError

if TYPE_CHECKING:
    from reticent.policy import Policy

MOST_SHARDS = 1 << 16


def sharded(policy: Policy) -> Policy:
    """The policy as every shard applies it: one design for all of them; refuses methods that hold records back."""
    if policy.stream.method == "castle":
        raise PolicyError(
            "CASTLE holds records back and does not run in shards.",
            hint="Write stream: {method: sealed}, or run it on one machine.",
        )
    settings = policy.to_dict()
    settings["stream"] = {**settings.get("stream", {}), "epochs": "fixed"}
    return type(policy).from_dict(settings, base=policy.base)


def shard_of(person: str, shards: int, key: bytes) -> int:
    """The shard of a person: a keyed hash, so that nobody can aim persons at a shard."""
    digest = hashlib.blake2b(person.encode(), digest_size=8, key=key, person=b"reticent shard").digest()
    return int.from_bytes(digest, "little") % shards
