"""The domain of the veil: one antichain of the value hierarchy, fixed before the first record.

Rare codes are replaced by their parent. Where some children of a node are frequent and stay, the others stand together as
"node, other"; what is still rare there goes further up, at last to "other". Without a hierarchy every rare value becomes
"other", also a single one: its name alone would tell that somebody had it. "other" is always there, so that every value,
new ones included, has a place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.engine.veil.prior.fields import coded, names, steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from reticent.policy import Policy
    from reticent.policy.hierarchy import Ladder

OTHER = "other"

Node = tuple[int, str]
"""A node of the hierarchy: its level and its label."""


@dataclass(frozen=True, repr=False)
class Domain:
    """The values that can be offered.

    Attributes:
        column: the sensitive column.
        labels: in canonical (sorted) order; `other` is one of them.
    """

    column: str
    labels: tuple[str, ...]

    @classmethod
    def from_labels(cls, column: str, labels: Iterable[str]) -> Domain:
        """The domain of some labels, each of which is a value, a node, or a node with ", other"."""
        return cls(column, tuple(sorted({*labels, OTHER})))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Domain({self.column!r}, {len(self)} values)"

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.labels)}

    def codes(self, column: pa.ChunkedArray | pa.Array, policy: Policy) -> npt.NDArray[np.int32]:
        """The code of each record's value."""
        values, codes = coded(column)
        table = [self._place(path)[1] for path in _paths(steps(policy, self.column, values))]
        return np.array(table, dtype=np.int32)[codes]

    def parents(self, values: pa.Array, policy: Policy) -> npt.NDArray[np.int32]:
        """Per code, the number of the node above it: codes of one number are siblings.

        Args:
            values: values whose ancestors are known; a code that none of them belongs to stands alone under the root.
            policy: holds the hierarchy.
        """
        below: dict[Node, set[int]] = {}
        ways: dict[int, list[Node]] = {}
        for path in _paths(steps(policy, self.column, values)):
            level, code = self._place(path)
            ways[code] = path[level:]
            for node in path[level:]:
                below.setdefault(node, set()).add(code)
        # A chain of nodes with one value below is one node: siblings meet where it ends.
        above = [next((node for node in ways.get(code, ()) if len(below[node]) > 1), None) for code in range(len(self))]
        numbers = {node: number for number, node in enumerate(dict.fromkeys(above))}
        return np.array([numbers[node] for node in above], dtype=np.int32)

    def _place(self, path: list[Node]) -> tuple[int, int]:
        """The level and the code of the first ancestor that the domain has."""
        for level, label in path:
            for name in (label, f"{label}, {OTHER}"):
                if name in self._codes:
                    return level, self._codes[name]
        return len(path) - 1, self._codes[OTHER]


def domain(values: pa.Array, counts: npt.NDArray[np.int64], policy: Policy, column: str, *, least: float) -> Domain:
    """The finest antichain whose values have at least so many records each.

    Args:
        values: distinct values of the past.
        counts: records of each, with noise where the past is not public.
        policy: holds the hierarchy.
        column: the sensitive column.
        least: records below which a value is rare.
    """
    rungs = steps(policy, column, values)
    paths = _paths(rungs)
    labels: list[str] = []
    parted: set[Node] = set()  # nodes with a value of their own below them
    waiting = list(range(len(paths)))
    for level in range(rungs.height):
        frequent = _frequent(level, waiting, paths, counts, least)
        labels += [f"{node[1]}, {OTHER}" if node in parted else node[1] for node in frequent]
        parted |= {above for path in paths if path[level] in frequent for above in path[level + 1 :]}
        waiting = [code for code in waiting if paths[code][level] not in frequent]
    return Domain.from_labels(column, labels)


def _frequent(
    level: int, waiting: list[int], paths: list[list[Node]], counts: npt.NDArray[np.int64], least: float
) -> set[Node]:
    """Nodes of one level that hold enough of what has no place below them."""
    held: Counter[Node] = Counter()
    for code in waiting:
        held[paths[code][level]] += int(counts[code])
    return {node for node, count in held.items() if count >= least}


def _paths(rungs: Ladder) -> list[list[Node]]:
    """Per value, its nodes from the value itself up to `*`."""
    labels = [names(level) for level in rungs.labels]
    return [
        [(level, labels[level][table[code]]) for level, table in enumerate(rungs.tables)]
        for code in range(len(rungs.tables[0]))
    ]
