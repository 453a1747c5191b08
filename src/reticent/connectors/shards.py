"""Shards: one stream on many machines, each shard a whole publisher with groups of its own.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from reticent.engine import publisher_class
from reticent.engine.stream.immediate import Immediate, group_names
from reticent.engine.stream.records import Records
from reticent.errors import PolicyError, StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.policy import Policy

Record = dict[str, Any]
MOST_SHARDS = 1 << 16
_NESTED = (dict, list)


def sharded(policy: Policy) -> Policy:
    """The policy as every shard applies it: one design for all of them; refuses methods that hold records back."""
    if policy.stream.method == "castle":
        raise PolicyError(
            "CASTLE holds records back and does not run in shards.",
            hint="Write stream: {method: sealed}, or run it on one machine.",
        )
    plain = policy.to_dict()
    plain["stream"] = {**plain.get("stream", {}), "epochs": "fixed"}
    return type(policy).from_dict(plain, base=policy.base)


def shard_of(person: str, shards: int, key: bytes) -> int:
    """The shard of a person: a keyed hash, so that nobody can aim persons at a shard."""
    digest = hashlib.blake2b(person.encode(), digest_size=8, key=key, person=b"reticent shard").digest()
    return int.from_bytes(digest, "little") % shards


@dataclass(frozen=True, repr=False)
class Taken:
    """What came of a batch: lines to publish, and what to remember of it."""

    lines: list[bytes]
    journal: bytes


class Shard:
    """One publisher behind JSON records; the same records at the same positions give the same lines, always."""

    def __init__(self, policy: Policy, rng: Rng, number: int, snapshot: bytes | None = None) -> None:
        self.form = Form(policy)
        self._columns, self._quasi, self._plain = tuple(policy.columns), policy.quasi, policy.plain
        kind = publisher_class("stream", policy.stream.method)
        if not issubclass(kind, Immediate):
            raise PolicyError(f"Method {policy.stream.method} does not run in shards.", hint="Use sealed.")
        if snapshot is None:
            self.publisher: Immediate = kind(policy, rng=rng, shard=number)
            return
        self.publisher = kind.restore(policy, snapshot)
        if self.publisher.rng.secret != rng.secret or self.publisher.shard != number:
            raise StateError(
                "The state of the shard was made under another key.",
                hint="Start with the store that the stream was begun with: a new key would publish persons anew.",
            )

    @property
    def rows(self) -> int:
        """Records released so far."""
        return self.publisher.counts.published

    def replay(self, journal: bytes) -> None:
        """Takes in again what was published before."""
        self.publisher.replay(Records.from_bytes(journal))

    def snapshot(self) -> bytes:
        """The whole private state."""
        return self.publisher.snapshot()

    def take(self, records: Sequence[Record], seqs: npt.NDArray[np.uint64] | None = None) -> Taken:
        """Releases records at their positions, by default the next ones."""
        if not records:
            return Taken([], b"")
        read = self.publisher.read(self._table(records), seqs)
        placed = self.publisher.place(read)
        return Taken(self._lines(records, read, placed), read.to_bytes())

    def _table(self, records: Sequence[Record]) -> pa.Table:
        # Everything as text: a value then looks the same in every batch, whatever its neighbours are.
        return pa.table(
            {name: pa.array([_text(record[name]) for record in records], pa.string()) for name in self._columns}
        )

    def _lines(self, records: Sequence[Record], read: Records, placed: Any) -> list[bytes]:
        quasi, plain, labels = self._quasi, self._plain, self.publisher.values.labels
        opened, groups = group_names(placed.opened).to_pylist(), group_names(placed.groups).to_pylist()
        codes, counts = placed.codes.tolist(), placed.counts.tolist()
        offsets, before = placed.offsets.tolist(), placed.at.tolist()
        seqs = read.seqs.tolist()
        lines, at = [], 0
        for row, record in enumerate(records):
            while at < len(opened) and before[at] <= row:
                part = slice(offsets[at], offsets[at + 1])
                listed = [[labels[code], count] for code, count in zip(codes[part], counts[part], strict=True)]
                lines.append(orjson.dumps({"type": "group", "group": opened[at], "candidates": listed}))
                at += 1
            line = {
                "type": "tuple",
                "group": groups[row],
                "seq": seqs[row],
                "qi": {name: record[name] for name in quasi},
                "plain": {name: record[name] for name in plain},
            }
            lines.append(orjson.dumps(line))
        return lines


class Form:
    """What a record must look like under a policy; built once, asked for every record."""

    def __init__(self, policy: Policy) -> None:
        self._columns = tuple(policy.columns)
        self._known = frozenset(policy.columns)
        self._released = frozenset(policy.released)
        self._person = policy.person

    def read(self, value: bytes | str | None) -> Record | str:
        """One JSON object as a record with every column of the policy, or the reason why it is none."""
        try:
            found = orjson.loads(value) if value is not None else None
        except orjson.JSONDecodeError:
            return "not JSON"
        return self._record(found) if isinstance(found, dict) else "not a JSON object"

    def _record(self, found: dict[str, Any]) -> Record | str:
        names = found.keys()
        if not names <= self._known:
            return f"{len(names - self._known)} fields without a role in the policy"
        if names.isdisjoint(self._released):
            return "none of the policy's columns"
        record = {name: found.get(name) for name in self._columns}
        if any(type(value) in _NESTED for value in record.values()):
            return "a field is not a single value"
        if self._person is not None and record[self._person] is None:
            return f"no '{self._person}'"
        return record

    def person(self, record: Record) -> str:
        """What stands for the person when records are spread over shards; without a person column the whole record."""
        if self._person is not None:
            return _text(record[self._person]) or ""
        return orjson.dumps(record).decode()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
