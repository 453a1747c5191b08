"""Ledger: what the world has already seen of whom. Private; it never leaves the house.

Persons appear as keyed hashes. An audit that counted rows would miss an engine that counts rows; this counts persons.
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
    """One publication, as it was."""

    number: int
    time: str
    policy_hash: str
    method: str
    records: RecordCounts
    digest: str


@dataclass(repr=False)
class Ledger:
    """Append-only: publications, and per publication which person stood in which group."""

    entries: list[LedgerEntry] = field(default_factory=list)
    persons: list[UInt64s] = field(default_factory=list)
    groups: list[Int64s] = field(default_factory=list)

    def record(self, entry: LedgerEntry, persons: UInt64s, groups: Int64s) -> None:
        """Adds a publication; `persons` and `groups` run side by side."""
        self.entries.append(entry)
        self.persons.append(persons)
        self.groups.append(groups)

    @property
    def digests(self) -> dict[int, str]:
        """Those of the releases, by their numbers."""
        return {entry.number: entry.digest for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Ledger({len(self)} publications)"


def person_hashes(names: Iterable[str | None], key: bytes) -> UInt64s:
    """Keyed 64-bit hashes of person identifiers; without the key nothing about the person can be read from them."""
    keyed, digests = hashlib.blake2b(digest_size=8, key=key), []
    for name in names:
        one = keyed.copy()
        one.update(str(name).encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8")
