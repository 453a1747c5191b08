"""Quasi-identifiers of one release: points for the grouping, and one published range or node per group.

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
    """One quasi-identifier: codes per row, its hierarchy, and a coordinate in [0, 1] per code."""

    name: str
    codes: Int32s
    hierarchy: HierarchyLevels
    numbers: Floats | None
    coordinates: Floats

    def cover(self, donors: Int32s, starts: Int64s) -> pa.Array:
        """Return what each group publishes."""
        codes = self.codes[donors]
        return self._nodes(codes, starts) if self.numbers is None else self._ranges(codes, starts, self.numbers)

    def _ranges(self, codes: Int32s, starts: Int64s, numbers: Floats) -> pa.Array:
        low = np.minimum.reduceat(numbers[codes], starts)
        high = np.maximum.reduceat(numbers[codes], starts)
        missing = np.add.reduceat(np.isnan(numbers[codes]).astype(np.int64), starts)
        sizes = np.diff(np.append(starts, len(codes)))
        whole = bool(np.all(numbers[np.isfinite(numbers)] % 1 == 0))
        show = (lambda number: str(int(number))) if whole else repr
        # A group with a missing number publishes `*`, or nothing if all numbers are missing.
        labels = np.full(len(starts), "*", dtype=object)
        labels[missing == sizes] = None
        known = missing == 0
        # Each range is formatted once: a complex number encodes its two ends.
        ends, place = np.unique(low[known] + 1j * high[known], return_inverse=True)
        pairs = zip(ends.real.tolist(), ends.imag.tolist(), strict=True)
        texts = [show(a) if a == b else f"[{show(a)}, {show(b)}]" for a, b in pairs]
        labels[known] = np.array(texts, dtype=object)[place]
        return pa.array(labels.tolist(), type=pa.string())

    def _nodes(self, codes: Int32s, starts: Int64s) -> pa.Array:
        labels = np.full(len(starts), None, dtype=object)
        open_ = np.ones(len(starts), dtype=bool)
        for table, level_labels in zip(self.hierarchy.node_ids, self.hierarchy.labels, strict=True):
            nodes = table[codes]
            first = nodes[starts]
            same = open_ & (np.minimum.reduceat(nodes, starts) == np.maximum.reduceat(nodes, starts))
            names = np.array(level_labels.cast(pa.string()).to_pylist(), dtype=object)
            labels[same] = names[first[same]]
            open_ &= ~same
        return pa.array(labels.tolist(), type=pa.string())


def attributes(table: pa.Table, policy: Policy) -> list[Attribute]:
    """Return the quasi-identifiers of a table."""
    encoded = encode_table(table, policy.quasi)
    out = []
    for name in policy.quasi:
        values = encoded.dictionaries[name].values
        hierarchy = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
        numbers = _numbers(values, hierarchy)
        out.append(Attribute(name, encoded.codes[name], hierarchy, numbers, _coordinates(hierarchy, numbers)))
    return out


def points(quasi: list[Attribute], rows: int) -> Float32s:
    """Return the coordinates of the records, one row each."""
    columns = [a.coordinates[a.codes] for a in quasi]
    return np.ascontiguousarray(np.stack(columns, axis=1) if columns else np.zeros((rows, 0)), dtype=np.float32)


def traits(table: pa.Table, policy: Policy, key: bytes) -> UInt64s:
    """Return a keyed hash of each row's quasi-identifiers, to detect later changes."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    encoded = encode_table(table, policy.quasi)
    for i, name in enumerate(policy.quasi):
        values = encoded.dictionaries[name].values.cast(pa.string()).to_pylist()
        digests = [hashlib.blake2b(f"{i} {value}".encode(), digest_size=8, key=key).digest() for value in values]
        total += np.frombuffer(b"".join(digests), dtype=np.uint64)[encoded.codes[name]]
    return total


def _numbers(values: pa.Array, hierarchy: HierarchyLevels) -> Floats | None:
    if hierarchy.numeric is not None:
        return hierarchy.numeric
    if (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)) and hierarchy.height == 1:
        return np.array([np.nan if v is None else float(v) for v in values.to_pylist()])
    return None


def _coordinates(hierarchy: HierarchyLevels, numbers: Floats | None) -> Floats:
    """Order numbers by size, and categories by their place in the tree, so that neighbors share an ancestor."""
    if numbers is not None:
        ordinals = np.nan_to_num(numbers, nan=float(np.nanmin(numbers)) if np.isfinite(numbers).any() else 0.0)
    else:
        ordinals = np.argsort(np.lexsort(hierarchy.node_ids)).astype(np.float64)  # the last key, the root, counts most
    width = float(ordinals.max() - ordinals.min()) if len(ordinals) else 0.0
    return np.asarray((ordinals - ordinals.min()) / width if width else np.zeros(len(ordinals)))
