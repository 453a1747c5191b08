"""Several publications of one evolving table: intersection and subtraction, as an attacker would do them.

Every person starts with all values of their group. The values of later groups are intersected. If a group and a group of
the next publication share members, the difference of their value counts belongs to the persons who joined or left.
Values that become certain are removed from the other members, until nothing changes.

Guarantee: as long as a person's value stays the same, no candidate is removed wrongly. If an attacker with all publications
    leaves a person fewer than l candidates, the claim is refuted. Persons are linked by quasi-identifiers that occur once
    per publication, or by the private ledger, which links all.
Not covered: joint reasoning over many persons beyond certainty; weights (a candidate is possible, however improbable).
Cost: linear in the rows of all publications per round; at most eight rounds.
Reference: X. Xiao, Y. Tao, "m-invariance", SIGMOD 2007 (the attack); O. Temuujin and others, IEEE Access 2019 (the victim).
Differences from the paper: none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s, UInt64s
from reticent.policy import Policy
from reticent.release import Ledger
from reticent.verify.published import Published
from reticent.verify.result import VerificationResult, none_of

_ROUNDS = 8
_ONE_ONLY = "The method is safe for one publication only, but there are several."


@dataclass(frozen=True, repr=False)
class Publication:
    """One publication: the group of each person, and the value counts of each group."""

    group_of: Mapping[Hashable, str]
    counts: Mapping[str, Counter[str | None]]

    @classmethod
    def from_tables(cls, qit: pa.Table, st: pa.Table, subjects: Sequence[Hashable]) -> Publication:
        """Build from the two tables and the person of each row of 'qit' (None: cannot be linked)."""
        groups = (str(group) for group in _text_list(qit["group"]))
        named = {who: group for who, group in zip(subjects, groups, strict=True) if who is not None}
        return cls(named, _counts(st))

    @classmethod
    def from_ledger(cls, st: pa.Table, persons: UInt64s, groups: Int64s) -> Publication:
        """Build from the values of the groups and the ledger; a person in several groups is left out."""
        alone, first, often = np.unique(persons, return_index=True, return_counts=True)
        named = zip(alone[often == 1].tolist(), map(str, groups[first[often == 1]].tolist()), strict=True)
        return cls(dict(named), _counts(st))


def _counts(st: pa.Table) -> dict[str, Counter[str | None]]:
    counts: dict[str, Counter[str | None]] = defaultdict(Counter)
    for group, value, count in zip(*(_text_list(st[name]) for name in ("group", "value", "count")), strict=True):
        counts[str(group)][value] += int(count or 0)
    return counts


class CandidateElimination:
    """Narrow the candidates of every person, publication by publication."""

    def __init__(self) -> None:
        self._bits: dict[str | None, int] = {}
        self._possible: dict[Hashable, int] = {}
        self._seen: list[tuple[Publication, dict[str, list[Hashable]]]] = []

    def add(self, publication: Publication) -> None:
        """Narrow the candidates by the next publication."""
        members: dict[str, list[Hashable]] = defaultdict(list)
        masks = {group: self._mask(counts) for group, counts in publication.counts.items()}
        for who, group in publication.group_of.items():
            members[group].append(who)
            self._possible[who] = self._possible.get(who, -1) & masks.get(group, 0)
        self._seen.append((publication, members))
        if len(self._seen) > 1:
            self._subtract(*self._seen[-2], *self._seen[-1])
            self._eliminate()

    def candidates(self) -> dict[Hashable, int]:
        """Return how many values remain possible for each person."""
        return {who: mask.bit_count() for who, mask in self._possible.items()}

    def values(self) -> dict[Hashable, set[str | None]]:
        """Return the values that remain possible for each person."""
        names = list(self._bits)
        return {who: {name for i, name in enumerate(names) if mask >> i & 1} for who, mask in self._possible.items()}

    def _mask(self, values: Counter[str | None]) -> int:
        mask = 0
        for value in values:
            mask |= 1 << self._bits.setdefault(value, len(self._bits))
        return mask

    def _subtract(
        self,
        old: Publication,
        before: Mapping[str, list[Hashable]],
        new: Publication,
        after: Mapping[str, list[Hashable]],
    ) -> None:
        pairs = {(old.group_of[who], group) for who, group in new.group_of.items() if who in old.group_of}
        for was, now in pairs:
            # Counterfeits hide whose values are shown, so groups with counterfeits cannot be subtracted.
            if _has_spare_seats(old, before, was) or _has_spare_seats(new, after, now):
                continue
            left, joined = set(before[was]) - set(after[now]), set(after[now]) - set(before[was])
            gain, loss = new.counts[now] - old.counts[was], old.counts[was] - new.counts[now]
            if gain.total() == len(joined):
                self._narrow(joined, self._mask(gain))
                self._narrow(left, self._mask(loss))

    def _narrow(self, persons: set[Hashable], mask: int) -> None:
        for who in persons:
            self._possible[who] &= mask

    def _eliminate(self) -> None:
        """Let what is certain in one group narrow the others, until nothing changes."""
        for _ in range(_ROUNDS):
            changed = False
            for publication, members in self._seen:
                for group, persons in members.items():
                    if not _has_spare_seats(publication, members, group):
                        changed |= self._exhaust(publication.counts[group], persons)
            if not changed:
                return

    def _exhaust(self, counts: Counter[str | None], persons: list[Hashable]) -> bool:
        """Use that each value belongs to exactly as many members as the group counts; return whether this narrowed any."""
        possible, changed = self._possible, False
        for value, count in counts.items():
            bit = 1 << self._bits[value]
            holders = [who for who in persons if possible[who] & bit]
            sure = sum(possible[who] == bit for who in holders)
            if sure == len(holders):
                continue
            if sure >= count:  # all holders are known: nobody else has the value
                keep = ~bit
            elif len(holders) == count:  # as many possible holders as the count: all of them have the value
                keep = bit
            else:
                continue
            for who in holders:
                if possible[who] != bit:
                    possible[who] &= keep
            changed = True
        return changed


def verify_sequence(releases: Sequence[Published], policy: Policy, ledger: Ledger | None = None) -> VerificationResult:
    """Check that all publications together leave every person at least l candidates."""
    anatomies = [release for release in releases if release.shape == "anatomy" and {"qit", "st"} <= set(release.tables)]
    if len(anatomies) < 2:
        return VerificationResult(())
    attack = CandidateElimination()
    for publication in link_publications(anatomies, policy, ledger):
        attack.add(publication)
    candidates = list(attack.candidates().values())
    l = policy.l_of("evolving")
    below = sum(count < l for count in candidates)
    worst = f"Worst case over {len(anatomies)} publications: {min(candidates, default=0)} candidates."
    notes = [f"{worst} {below} persons have fewer than {l}."]
    if any(release.claims.get("publications") == 1 for release in anatomies):
        notes.append(_ONE_ONLY)
    return VerificationResult(
        (none_of("no person has fewer than l candidates, given all publications", below),), tuple(notes)
    )


def link_publications(releases: Sequence[Published], policy: Policy, ledger: Ledger | None) -> list[Publication]:
    """Link persons over releases: all of them by a complete ledger, else those with unique quasi-identifiers."""
    tables = [(release.tables["qit"], release.tables["st"]) for release in releases]
    if ledger is None or len(ledger) != len(tables) or not all(map(len, ledger.persons)):
        return [Publication.from_tables(qit, st, unique_keys(qit, policy)) for qit, st in tables]
    places = zip(tables, ledger.persons, ledger.groups, strict=True)
    return [Publication.from_ledger(st, persons, groups) for (_, st), persons, groups in places]


def unique_keys(qit: pa.Table, policy: Policy) -> list[Hashable]:
    """Return the quasi-identifiers of each row if they occur once, else None."""
    columns = [_text_list(qit[name]) for name in policy.quasi if name in qit.column_names]
    tuples = list(zip(*columns, strict=True))
    often = Counter(tuples)
    return [key if often[key] == 1 else None for key in tuples]


def _has_spare_seats(publication: Publication, members: Mapping[str, list[Hashable]], group: str) -> bool:
    return publication.counts[group].total() != len(members[group])


def _text_list(column: pa.ChunkedArray) -> list[str | None]:
    cells: list[str | None] = column.cast(pa.string()).to_pylist()
    return cells
