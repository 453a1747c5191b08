"""Reference implementations of the evolving kernels, in plain Python."""

from __future__ import annotations

import struct
from collections import defaultdict


def _quarter(x, a, b, c, d):
    for p, q, r, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] = (x[p] + x[q]) & 0xFFFFFFFF
        mixed = x[r] ^ x[p]
        x[r] = ((mixed << n) | (mixed >> (32 - n))) & 0xFFFFFFFF


class ChaCha:
    """ChaCha20 as a source of 64-bit numbers."""

    def __init__(self, key: bytes) -> None:
        self.words = self._stream(struct.unpack("<8I", key))

    def _stream(self, key):
        counter = 0
        while True:
            start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, counter & 0xFFFFFFFF, counter >> 32, 0, 0]
            x = list(start)
            for _ in range(10):
                for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
                    _quarter(x, a, b, c, d)
                for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                    _quarter(x, a, b, c, d)
            yield from ((u + v) & 0xFFFFFFFF for u, v in zip(x, start, strict=True))
            counter += 1

    def below(self, n: int) -> int:
        while True:
            wide = (next(self.words) | next(self.words) << 32) * n
            low = wide & (2**64 - 1)
            if low >= n or low >= (2**64 - n) % n:
                return wide >> 64


def shuffled(items, below):
    items = list(items)
    for i in range(len(items) - 1, 0, -1):
        j = below(i + 1)
        items[i], items[j] = items[j], items[i]
    return items


def enc_delete(classes: dict[int, int], values: dict[int, int], rows, l: int) -> dict[int, int]:
    """Algorithm 2 on a map row -> class; rows that no class can take map to -1."""
    members = defaultdict(set)
    for row, c in classes.items():
        members[c].add(row)
    withheld = members.pop(-1, set())
    distinct = lambda c: len({values[r] for r in members[c]})  # noqa: E731
    touched = {classes[row] for row in rows} - {-1}
    for row in rows:
        members[classes[row]].discard(row)
        withheld.discard(row)
    needy = {c for c in touched if distinct(c) < l}
    satisfied = {c for c in members if c not in needy and members[c]}
    while needy:
        least = min(needy, key=lambda c: (len(members[c]), c))
        needy.discard(least)
        for row in sorted(members.pop(least)):
            lacking = [c for c in needy if values[row] not in {values[r] for r in members[c]}]
            pool = lacking or satisfied
            if not pool:
                withheld.add(row)
                continue
            chosen = min(pool, key=lambda c: (len(members[c]), c))
            members[chosen].add(row)
            if chosen in needy and distinct(chosen) >= l:
                needy.discard(chosen)
                satisfied.add(chosen)
    assigned = {row: c for c, rows_ in members.items() for row in rows_}
    return assigned | dict.fromkeys(withheld, -1)


def eac_place(clusters: dict[int, set[int]], quasi, row: int, scale) -> int:
    """The cluster that gains least information loss; ties go to the smallest, then the first."""

    def loss(rows):
        total = 0.0
        for a, s in enumerate(scale):
            codes = [quasi[r][a] for r in rows]
            total += (max(codes) - min(codes)) * s if s else float(max(codes) != min(codes))
        return len(rows) * total

    order = sorted(clusters, key=lambda c: (len(clusters[c]), c))
    return min(order, key=lambda c: loss(clusters[c] | {row}) - loss(clusters[c]))


def _distinct(rows, values) -> int:
    return len({values[r] for r in rows})


def _members(classes: dict[int, int]) -> dict[int, set[int]]:
    members = defaultdict(set)
    for row, c in classes.items():
        if c != -1:
            members[c].add(row)
    return dict(members)


def _least_free(members) -> int:
    return next(c for c in range(len(members) + 1) if c not in members)


def _map(members, rows) -> dict[int, int]:
    """Row -> class of all rows; -1 for those without one."""
    return dict.fromkeys(rows, -1) | {row: c for c, rows_ in members.items() for row in rows_}


def _form(members, values, rows, l, anatomy) -> list[int]:
    """Opens the classes that Anatomy forms of the rows; the rows it could not group."""
    if _distinct(rows, values) < l:
        return rows
    order = sorted({values[r] for r in rows})
    groups, count = anatomy([order.index(values[r]) for r in rows], len(order), l)
    opened = []
    for _ in range(count):
        opened.append(_least_free(members))
        members[opened[-1]] = set()
    for row, group in zip(rows, groups, strict=True):
        if group != -1:
            members[opened[group]].add(row)
    return [row for row, group in zip(rows, groups, strict=True) if group == -1]


def enc_insert(classes: dict[int, int], values: dict[int, int], fresh, l: int, anatomy) -> dict[int, int]:
    """Algorithm 1: Anatomy over the withheld and the new rows; what it leaves goes to the smallest class."""
    members = _members(classes)
    withheld = sorted(r for r, c in classes.items() if c == -1)
    for row in _form(members, values, withheld + list(fresh), l, anatomy):
        if members:
            members[min(members, key=lambda c: (len(members[c]), c))].add(row)
    return _map(members, [*classes, *fresh])


def _eac_put(members, values, quasi, row, scale, l) -> None:
    """Adds the row where it costs least; a cluster with 2 l values gives every second one to a new cluster."""
    if not members:
        return
    chosen = eac_place(members, quasi, row, scale)
    members[chosen].add(row)
    order = sorted({values[r] for r in members[chosen]})
    if len(order) >= 2 * l:
        leaving = {r for r in members[chosen] if values[r] in order[1::2]}
        members[chosen] -= leaving
        members[_least_free(members)] = leaving


def eac_insert(classes: dict[int, int], values: dict[int, int], fresh, l: int, anatomy, quasi, scale) -> dict[int, int]:
    members = _members(classes)
    rows = sorted(r for r, c in classes.items() if c == -1) + list(fresh)
    if not members:
        rows = _form(members, values, rows, l, anatomy)
    for row in rows:
        _eac_put(members, values, quasi, row, scale, l)
    return _map(members, [*classes, *fresh])


def eac_delete(classes: dict[int, int], values: dict[int, int], rows, l: int, quasi, scale) -> dict[int, int]:
    members = _members(classes)
    for row in rows:
        home = next((c for c in members if row in members[c]), None)
        if home is None:
            continue
        members[home].discard(row)
        if _distinct(members[home], values) < l:
            for loose in sorted(members.pop(home)):
                _eac_put(members, values, quasi, loose, scale, l)
    return _map(members, [r for r in classes if r not in set(rows)])
