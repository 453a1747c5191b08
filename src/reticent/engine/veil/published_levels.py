"""Publish quasi-identifiers at the level that the policy names, and assign records to strata of the prior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s
from reticent.encode import Dictionary
from reticent.encode.dictionary import pack_codes
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT, HierarchyLabeler, HierarchyLevels, build_levels
from reticent.policy.spec import HierarchySpec


class PublishedLevels:
    """Generalizes each quasi-identifier to its published level, with a cache."""

    def __init__(self, policy: Policy, by: Sequence[str], strata: Sequence[tuple[str, ...]]) -> None:
        self._policy, self.by, self._strata = policy, tuple(by), tuple(strata)
        unpublished = [name for name in self.by if name not in (*policy.quasi, *policy.plain)]
        if unpublished:
            raise PolicyError(
                f"prior: the file depends on '{unpublished[0]}', which the policy does not release.",
                hint="Make the prior again with `reticent prior`, by published columns.",
            )
        self._stratum_cache: dict[tuple[frozenset[str], ...], int] = {}
        self._climbers: dict[str, HierarchyLabeler] = {}

    def publish(self, table: pa.Table) -> tuple[pa.Table, UInt32s]:
        """Return the released columns of a table without the sensitive one, and the stratum of every record."""
        columns: dict[str, pa.Array] = {}
        nodes: dict[str, tuple[Int32s, list[frozenset[str]]]] = {}
        for name in (*self._policy.quasi, *self._policy.plain):
            dictionary = Dictionary()
            codes = dictionary.encode(table.column(name))
            level, levels = self.hierarchy_of(name, dictionary.values)
            columns[name] = levels.labels[level].take(pa.array(levels.node_ids[level][codes]))
            if name in self.by:
                nodes[name] = codes, ancestors_of(levels, level)
        return pa.table(columns), self._strata_of(table.num_rows, nodes)

    def hierarchy_of(self, name: str, values: pa.Array) -> tuple[int, HierarchyLevels]:
        """Return the published level of a column, and all levels of the given values."""
        levels = build_levels(self._hierarchy(name), values, column=name, base=self._policy.base)
        return self._level(name, levels.height), levels

    def generalize(self, name: str, values: Sequence[str | None]) -> list[tuple[str | None, frozenset[str]]]:
        """Return for each value what is published, and the labels of that node and of all nodes above it."""
        if name not in self._climbers:
            self._climbers[name] = HierarchyLabeler(self._hierarchy(name), column=name, base=self._policy.base)
        labels = [values, *self._climbers[name].labels(values), [ROOT] * len(values)]
        level = self._level(name, len(labels) - 1)
        above = zip(*labels[level:], strict=True)
        return [(path[0], frozenset([label or "" for label in path])) for path in above]

    def prefix_length(self, name: str) -> int | None:
        """Return how many leading characters determine, with the length, what is published of a value; None: all."""
        spec, level = self._hierarchy(name), self._policy.columns[name].level
        if spec is None or spec.prefix is None or not level:
            return None
        lengths = range(spec.prefix - 1, 0, -1) if isinstance(spec.prefix, int) else spec.prefix
        return max(lengths[level - 1 :], default=0)

    def _hierarchy(self, name: str) -> HierarchySpec | None:
        column = self._policy.columns[name]
        return column.hierarchy if column.role == "quasi" else None

    def _level(self, name: str, height: int) -> int:
        level = self._policy.columns[name].level
        if level > height:
            raise PolicyError(
                f"columns.{name}: level {level} is above the top level {height} of its hierarchy.",
                hint=f"Write a level of at most {height}.",
            )
        return level

    def _strata_of(self, size: int, nodes: dict[str, tuple[Int32s, list[frozenset[str]]]]) -> UInt32s:
        """Return the stratum of each record; records that agree in the columns of the prior are looked up once."""
        key = pack_codes([(codes, max(len(above), 1)) for codes, above in nodes.values()]) if nodes else np.zeros(size)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        sets = [nodes[name] for name in self.by]
        strata = [self.stratum_of(tuple(above[int(codes[at])] for codes, above in sets)) for at in first]
        return np.asarray(np.array(strata, dtype=np.uint32)[inverse.reshape(-1)])

    def stratum_of(self, ancestors: tuple[frozenset[str], ...]) -> int:
        """Return the first stratum of the file that contains a record: records in several strata were counted in the first."""
        if ancestors not in self._stratum_cache:
            fits = (
                stratum
                for stratum, cells in enumerate(self._strata)
                if all(cell in nodes for cell, nodes in zip(cells, ancestors, strict=True))
            )
            stratum = next(fits, None)
            if stratum is None:
                raise DataError(
                    "A record falls into no stratum of the prior.",
                    hint="Make the prior again with `reticent prior`, which adds a stratum for all other records.",
                )
            self._stratum_cache[ancestors] = stratum
        return self._stratum_cache[ancestors]


def ancestors_of(hierarchy: HierarchyLevels, level: int) -> list[frozenset[str]]:
    """Return for each leaf the labels of its published node and of all nodes above it."""
    labels = [hierarchy.labels[at].cast(pa.string()).to_pylist() for at in range(level, hierarchy.height + 1)]
    tables = [hierarchy.node_ids[at].tolist() for at in range(level, hierarchy.height + 1)]
    leaves = range(len(hierarchy.node_ids[0]))
    return [
        frozenset(words[table[leaf]] or "" for words, table in zip(labels, tables, strict=True)) | {ROOT}
        for leaf in leaves
    ]
