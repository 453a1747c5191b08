"""Ledger: which persons were published in which group of which publication. It is private and never published.

Persons are keyed hashes. The ledger counts persons, not rows, so that it also detects engines that count rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from reticent.arrays import Int64s, UInt64s
from reticent.release.release import RecordCounts


@dataclass(frozen=True)
class LedgerEntry:
    """One publication: number, time, policy, method, record counts and digest."""

    number: int
    time: str
    policy_hash: str
    method: str
    records: RecordCounts
    digest: str


@dataclass(repr=False)
class Ledger:
    """An append-only list of publications, with the persons of each and their groups."""

    entries: list[LedgerEntry] = field(default_factory=list)
    persons: list[UInt64s] = field(default_factory=list)
    groups: list[Int64s] = field(default_factory=list)

    def record(self, entry: LedgerEntry, persons: UInt64s, groups: Int64s) -> None:
        """Add a publication; `persons` and `groups` are parallel arrays."""
        self.entries.append(entry)
        self.persons.append(persons)
        self.groups.append(groups)

    @property
    def digests(self) -> dict[int, str]:
        """The digests of the releases, by number."""
        return {entry.number: entry.digest for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Ledger({len(self)} publications)"


def person_hashes(names: Iterable[str | None], key: bytes) -> UInt64s:
    """Return keyed_hash 64-bit hashes of person identifiers; without the key they disclose nothing about the person."""
    keyed_hash, digests = hashlib.blake2b(digest_size=8, key=key), []
    for name in names:
        digest = keyed_hash.copy()
        digest.update(str(name).encode())
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8")
