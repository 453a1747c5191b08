"""Quasi-identifiers of one release: points for the grouping, and one cover per group for the release.

Numbers are published as closed ranges, everything else as the lowest node of its hierarchy that covers the group.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Float32s, Floats, Int32s, Int64s, UInt64s
from reticent.encode import encode_table
from reticent.policy import Policy
from reticent.policy.hierarchy import HierarchyLevels, build_levels


@dataclass(frozen=True, repr=False)
class Attribute:
    """One quasi-identifier: codes per row, its ladder, and a coordinate in [0, 1] per code."""

    name: str
    codes: Int32s
    hierarchy: HierarchyLevels
    numbers: Floats | None
    coordinates: Floats

    def cover(self, donors: Int32s, starts: Int64s) -> pa.Array:
        """What each group publishes."""
        codes = self.codes[donors]
        return self._nodes(codes, starts) if self.numbers is None else self._ranges(codes, starts, self.numbers)

    def _ranges(self, codes: Int32s, starts: Int64s, numbers: Floats) -> pa.Array:
        low = np.minimum.reduceat(numbers[codes], starts)
        high = np.maximum.reduceat(numbers[codes], starts)
        missing = np.add.reduceat(np.isnan(numbers[codes]).astype(np.int64), starts)
        sizes = np.diff(np.append(starts, len(codes)))
        whole = bool(np.all(numbers[np.isfinite(numbers)] % 1 == 0))
        show = (lambda number: str(int(number))) if whole else repr
        # A group with a missing number says nothing about the others, unless all are missing.
        labels = np.full(len(starts), "*", dtype=object)
        labels[missing == sizes] = None
        known = missing == 0
        # Each range is written once: complex numbers stand for its two ends.
        ends, place = np.unique(low[known] + 1j * high[known], return_inverse=True)
        pairs = zip(ends.real.tolist(), ends.imag.tolist(), strict=True)
        written = [show(a) if a == b else f"[{show(a)}, {show(b)}]" for a, b in pairs]
        labels[known] = np.array(written, dtype=object)[place]
        return pa.array(labels.tolist(), type=pa.string())

    def _nodes(self, codes: Int32s, starts: Int64s) -> pa.Array:
        labels = np.full(len(starts), None, dtype=object)
        open_ = np.ones(len(starts), dtype=bool)
        for table, names in zip(self.hierarchy.node_ids, self.hierarchy.labels, strict=True):
            nodes = table[codes]
            first = nodes[starts]
            same = open_ & (np.minimum.reduceat(nodes, starts) == np.maximum.reduceat(nodes, starts))
            words = np.array(names.cast(pa.string()).to_pylist(), dtype=object)
            labels[same] = words[first[same]]
            open_ &= ~same
        return pa.array(labels.tolist(), type=pa.string())


def attributes(table: pa.Table, policy: Policy) -> list[Attribute]:
    """The quasi-identifiers of a table."""
    encoded = encode_table(table, policy.quasi)
    out = []
    for name in policy.quasi:
        values = encoded.dictionaries[name].values
        steps = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
        numbers = _numbers(values, steps)
        out.append(Attribute(name, encoded.codes[name], steps, numbers, _coordinates(steps, numbers)))
    return out


def points(quasi: list[Attribute], rows: int) -> Float32s:
    """One row of coordinates per record."""
    columns = [a.coordinates[a.codes] for a in quasi]
    return np.ascontiguousarray(np.stack(columns, axis=1) if columns else np.zeros((rows, 0)), dtype=np.float32)


def traits(table: pa.Table, policy: Policy, key: bytes) -> UInt64s:
    """A keyed hash of each row's quasi-identifiers, to tell later whether they changed."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    encoded = encode_table(table, policy.quasi)
    for i, name in enumerate(policy.quasi):
        words = encoded.dictionaries[name].values.cast(pa.string()).to_pylist()
        hashed = [hashlib.blake2b(f"{i} {word}".encode(), digest_size=8, key=key).digest() for word in words]
        total += np.frombuffer(b"".join(hashed), dtype=np.uint64)[encoded.codes[name]]
    return total


def _numbers(values: pa.Array, hierarchy: HierarchyLevels) -> Floats | None:
    if hierarchy.numeric is not None:
        return hierarchy.numeric
    if (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)) and hierarchy.height == 1:
        return np.array([np.nan if v is None else float(v) for v in values.to_pylist()])
    return None


def _coordinates(hierarchy: HierarchyLevels, numbers: Floats | None) -> Floats:
    """Numbers by size, categories by their place in the tree, so that near ones share an ancestor."""
    if numbers is not None:
        known = np.nan_to_num(numbers, nan=float(np.nanmin(numbers)) if np.isfinite(numbers).any() else 0.0)
    else:
        known = np.argsort(np.lexsort(hierarchy.node_ids)).astype(np.float64)  # the last key, the root, counts most
    width = float(known.max() - known.min()) if len(known) else 0.0
    return np.asarray((known - known.min()) / width if width else np.zeros(len(known)))
