"""Verify a running stream: each batch before delivery, together with everything delivered before.

Guarantee: in every batch that passes, each group is opened once, before its first record, with at least l distinct candidates in
    canonical order. An attacker who knows a person's group sees no candidate above 1/l of the total (Definition 3). No group
    takes more records than it has candidates, and positions rise. For generalized records, every published combination of
    quasi-identifiers covers at least k records with l distinct sensitive values at the end of the batch.
Not covered: what `reticent verify` checks on the whole transcript (a quasi-identifier twice in a group, the format of the
    lines); whether the true value is among the candidates, which only the engine knows.
Cost: one sort of the batch's groups and a search in the sorted open ones, some 70 ns per record; 20 bytes per open group,
    8 per combination of generalised records.
Reference: S. Kim, M. Sung, Y. Chung, "A framework to preserve the privacy of electronic health data streams",
    Journal of Biomedical Informatics 50, 2014 (Definition 3).
Differences from the paper: candidates must also be sorted, since insertion order would disclose the true value.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from reticent.arrays import Bools, Int32s, Int64s, UInt64s
from reticent.verify.original.maximum_matching import matching_size

# Smaller batches are verified record by record; the groups that they open are kept apart up to the limit.
_SMALL_BATCH, _RECENT_LIMIT = 256, 4_096
_EDGE = np.ones(1, dtype=bool)
_ROWS = np.uint64((1 << 32) - 1)


@dataclass(frozen=True, repr=False)
class OpenedGroups:
    """The groups that a batch opens: candidates by code and count, and the row before which each is opened."""

    groups: UInt64s
    at: Int64s
    offsets: Int64s
    codes: Int32s
    counts: Int32s


@dataclass(repr=False)
class _OpenGroups:
    """Groups that may still be joined, sorted by name: their free slots and the positions of their opening."""

    groups: UInt64s = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    free_slots: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    opened_at: UInt64s = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.groups)

    def find(self, groups: UInt64s) -> tuple[Int64s, Bools]:
        """Return the places of groups, and whether each is open."""
        if not len(self):
            return np.zeros(len(groups), dtype=np.int64), np.zeros(len(groups), dtype=bool)
        places = np.minimum(np.searchsorted(self.groups, groups), len(self) - 1)
        return places, self.groups[places] == groups

    def merge(self, other: _OpenGroups, *, oldest: int = 0) -> _OpenGroups:
        """Merge with other groups; drop groups that are full or were opened before a position."""
        groups = np.concatenate([self.groups, other.groups])
        room, since = (
            np.concatenate([self.free_slots, other.free_slots]),
            np.concatenate([self.opened_at, other.opened_at]),
        )
        order = np.argsort(groups, kind="stable")
        order = order[(room[order] > 0) & (since[order] >= np.uint64(oldest))]
        return _OpenGroups(groups[order], room[order], since[order])


class GroupVerifier:
    """Verify the groups of a stream; remember the groups that may still be joined.

    Args:
        l: the l that the policy requires.
        retire_after: positions after which a group takes no more records; 0 for never.
    """

    def __init__(self, l: int, retire_after: int = 0) -> None:
        self._l, self._retire_after = l, retire_after
        self._open = _OpenGroups()
        self._recent: dict[int, list[int]] = {}
        """Groups that small batches opened: free slots, and the position of the opening."""
        self._last = -1
        self._rank: Int64s = np.empty(0, dtype=np.int64)

    def violations(
        self, seqs: UInt64s, groups: UInt64s, opened: OpenedGroups, labels: Sequence[str | None]
    ) -> list[str]:
        """Describe what is wrong with a batch, without any value. After a violation, this verifier is unusable."""
        if len(seqs) != len(groups) or len(opened.offsets) != len(opened.groups) + 1:
            return ["the batch is incomplete"]
        rises = not len(seqs) or (int(seqs[0]) > self._last and bool((seqs[1:] > seqs[:-1]).all()))
        if not rises:
            return ["a position occurs twice"]
        members = self._check_small_batch if len(groups) < _SMALL_BATCH else self._check_large_batch
        problems = self._check_candidates(opened, labels) or members(seqs, groups, opened)
        if not problems and len(seqs):
            self._last = int(seqs[-1])
        return problems

    def _check_candidates(self, opened: OpenedGroups, labels: Sequence[str | None]) -> list[str]:
        if not len(opened.groups):
            return []
        if len(labels) > len(self._rank):
            self._rank = np.empty(len(labels), dtype=np.int64)
            self._rank[sorted(range(len(labels)), key=lambda code: labels[code] or "")] = np.arange(len(labels))
        starts, sizes = opened.offsets[:-1], opened.offsets[1:] - opened.offsets[:-1]
        if sizes.min() < self._l:
            return [f"{int((sizes < self._l).sum()):,} groups have fewer than {self._l} candidates"]
        ranks = self._rank[opened.codes]
        rises = ranks[1:] > ranks[:-1]
        rises[starts[1:] - 1] = True  # from one group to the next
        if not rises.all():
            return ["candidates are not distinct or not in canonical order"]
        totals, most = np.add.reduceat(opened.counts, starts), np.maximum.reduceat(opened.counts, starts)
        over = int((most * self._l > totals).sum())
        if over or opened.counts.min() < 1:
            return [f"a candidate is above 1/{self._l} of its group in {over:,} groups"]
        return []

    def _check_small_batch(self, seqs: UInt64s, groups: UInt64s, opened: OpenedGroups) -> list[str]:
        """Check a small batch record by record: a pass over all open groups would cost more."""
        places, here = self._open.find(groups)
        totals = np.add.reduceat(opened.counts, opened.offsets[:-1]).tolist() if len(opened.groups) else []
        upcoming = list(zip(opened.groups.tolist(), opened.at.tolist(), totals, strict=True))[::-1]
        positions, recent = seqs.tolist(), self._recent
        if len(upcoming) and (
            self._open.find(opened.groups)[1].any() or not recent.keys().isdisjoint(opened.groups.tolist())
        ):
            return ["a group is opened twice"]
        for row, (group, place, known) in enumerate(zip(groups.tolist(), places.tolist(), here.tolist(), strict=True)):
            while upcoming and upcoming[-1][1] <= row:
                name, _, total = upcoming.pop()
                if name in recent:
                    return ["a group is opened twice"]
                recent[name] = [total, positions[row]]
            if known:
                self._open.free_slots[place] -= 1
                left = self._open.free_slots[place]
            elif group in recent:
                recent[group][0] -= 1
                left = recent[group][0]
            else:
                late = any(name == group for name, _, _ in upcoming)
                return [
                    "a group is opened after its first record" if late else "1 group is joined without being opened"
                ]
            if left < 0:
                return ["1 group takes more records than it has candidates"]
        recent |= {name: [total, positions[-1] if positions else 0] for name, _, total in upcoming}
        if len(recent) > _RECENT_LIMIT:
            self._open, self._recent = self._all_open(), {}
        return []

    def _check_large_batch(self, seqs: UInt64s, groups: UInt64s, opened: OpenedGroups) -> list[str]:
        """Check a large batch at once, by group name among all open groups."""
        if self._recent:
            self._open, self._recent = self._all_open(), {}
        names, first, joins = _group_counts(groups)
        new, at = self._new_groups(seqs, opened)
        if (new.groups[1:] == new.groups[:-1]).any() or self._open.find(new.groups)[1].any():
            return ["a group is opened twice"]
        known = 0
        for part in (self._open, new):
            places, here = part.find(names)
            places, left = places[here], part.free_slots[places[here]] - joins[here]
            if len(left) and left.min() < 0:
                return [f"{int((left < 0).sum()):,} groups take more records than they have candidates"]
            if part is new and (first[here] < at[places]).any():
                return ["a group is opened after its first record"]
            known += len(left)
            part.free_slots[places] = left
        if known < len(names):
            return [f"{len(names) - known:,} groups are joined without being opened"]
        self._open = self._open.merge(new, oldest=self._oldest_position())
        return []

    def _new_groups(self, seqs: UInt64s, opened: OpenedGroups) -> tuple[_OpenGroups, Int64s]:
        """Return the groups that a batch opens, sorted by name, and the rows before which they are opened."""
        order = np.argsort(opened.groups)
        at = opened.at[order]
        totals = np.add.reduceat(opened.counts, opened.offsets[:-1])[order] if len(order) else at
        since = seqs[np.minimum(at, len(seqs) - 1)] if len(seqs) else np.zeros(len(order), dtype=np.uint64)
        return _OpenGroups(opened.groups[order], totals.astype(np.int64), since), at

    def _oldest_position(self) -> int:
        """Return the position before which opened groups are retired."""
        return max(0, self._last - self._retire_after) if self._retire_after else 0

    def _all_open(self) -> _OpenGroups:
        """Return all groups that may still be joined."""
        columns = [(name, room, since) for name, (room, since) in self._recent.items()]
        groups, room, since = zip(*columns, strict=True) if columns else ((), (), ())
        recent = _OpenGroups(
            np.array(groups, dtype=np.uint64), np.array(room, dtype=np.int64), np.array(since, dtype=np.uint64)
        )
        return self._open.merge(recent, oldest=self._oldest_position())

    def snapshot(self) -> bytes:
        """Return the state of the verifier."""
        both = self._all_open()
        head = orjson.dumps({"last": self._last, "open": len(both)})
        return b"".join([head, b"\n", both.groups.tobytes(), both.free_slots.tobytes(), both.opened_at.tobytes()])

    def restore(self, state: bytes) -> None:
        """Continue from a snapshot."""
        line, _, data = state.partition(b"\n")
        head = orjson.loads(line)
        size = head["open"]
        columns = [np.frombuffer(data, kind, size, 8 * size * i).copy() for i, kind in enumerate(("u8", "i8", "u8"))]
        self._last, self._open, self._recent = head["last"], _OpenGroups(*columns), {}


def _group_counts(groups: UInt64s) -> tuple[UInt64s, Int64s, Int64s]:
    """Return the sorted names of joined groups, the first row of each, and its number of rows."""
    # Half a name and the row in one number: twice as fast as sorting rows by name, and nearly always enough.
    order = (np.sort((groups & ~_ROWS) | np.arange(len(groups), dtype=np.uint64)) & _ROWS).astype(np.int64)
    names = groups[order]
    if not (names[1:] >= names[:-1]).all():
        order = np.argsort(groups, kind="stable")
        names = groups[order]
    edges = np.flatnonzero(np.concatenate([_EDGE, names[1:] != names[:-1], _EDGE]))
    starts = edges[:-1]
    return names[starts], order[starts], edges[1:] - starts


class RecordVerifier:
    """Verify generalized records: a combination may be published only if enough persons share it.

    Args:
        k: persons per combination; records if persons are unknown.
        l: persons per combination with distinct values.
        max_pending: maximum of pending records, whose persons are given to `add_persons`; 0 if persons are unknown.
    """

    def __init__(self, k: int, l: int, max_pending: int = 0) -> None:
        self._k, self._l, self._max_pending = k, l, max_pending
        self._known: set[int] = set()
        self._persons: dict[int, int] = {}

    def add_persons(self, seqs: UInt64s, persons: UInt64s) -> None:
        """Store the persons of the records at some positions, before any of these records is published."""
        self._persons.update(zip(seqs.tolist(), persons.tolist(), strict=True))

    def violations(self, records: pa.Table, quasi: Sequence[str], sensitive: str) -> list[str]:
        """Describe what is wrong with some records; remember their combinations if nothing is."""
        pairs: dict[int, dict[Any, set[int]]] = defaultdict(lambda: defaultdict(set))
        columns = [records.column(name).to_pylist() for name in quasi]
        owners = self._owners(records)
        for owner, value, *cells in zip(owners, records.column(sensitive).to_pylist(), *columns, strict=True):
            name = int.from_bytes(hashlib.blake2b(orjson.dumps(cells), digest_size=8).digest(), "little")
            if name not in self._known:
                pairs[name][value].add(owner)
        few = sum(len(set().union(*of.values())) < self._k for of in pairs.values())
        alike = sum(matching_size([*of.values()], self._l) < self._l for of in pairs.values())
        if few or alike:
            return [
                f"{few:,} combinations have fewer than {self._k} persons, {alike:,} have fewer than {self._l} values"
            ]
        self._known |= pairs.keys()
        return []

    def _owners(self, records: pa.Table) -> list[int]:
        """Return the persons of the records, -1 if unknown; forget the oldest positions above the pending limit."""
        if not self._max_pending:
            return list(range(records.num_rows))
        owners = [self._persons.pop(seq, -1) for seq in records.column("seq").to_pylist()]
        late = len(self._persons) - self._max_pending
        for seq in list(self._persons)[: max(0, late)]:
            del self._persons[seq]
        return owners

    def snapshot(self) -> bytes:
        """Return the state of the verifier."""
        persons = [number for pair in self._persons.items() for number in pair]
        return np.array([len(persons), *persons, *sorted(self._known)], dtype=np.uint64).tobytes()

    def restore(self, state: bytes) -> None:
        """Continue from a snapshot."""
        size, *numbers = np.frombuffer(state, dtype=np.uint64).tolist() or [0]
        self._persons = dict(zip(numbers[:size:2], numbers[1:size:2], strict=True))
        self._known = set(numbers[size:])
