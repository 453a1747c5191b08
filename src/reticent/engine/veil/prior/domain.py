"""Which values a veil offers: the finest antichain of the value hierarchy that the past carries.

Rare codes are replaced by their parent. Where some children of a node are frequent and stay, the others stand together as
"node, other"; what is still rare there goes further up, at last to "other". Without a hierarchy every rare value becomes
"other", also a single one: its name alone would tell that somebody had it. "other" is always there, so that every value,
new ones included, has a place.
"""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa

from reticent.arrays import Int64s
from reticent.engine.veil.domain import OTHER, Domain
from reticent.engine.veil.prior.fields import names, steps
from reticent.policy import Policy
from reticent.policy.hierarchy import Ladder

Node = tuple[int, str]
"""A node of the hierarchy: its level and its label."""


def choose_domain(
    values: pa.Array, counts: Int64s, policy: Policy, column: str, *, least: float, noise: float = 0.0
) -> Domain:
    """The finest antichain whose values have at least so many records each.

    Args:
        values: distinct values of the past.
        counts: records of each, with noise where the past is not public.
        policy: holds the hierarchy.
        column: the sensitive column.
        least: records below which a value is rare.
        noise: a count below which is noise; the noises of values that stand together add up.
    """
    rungs = steps(policy, column, values)
    paths = _paths(rungs)
    labels: list[str] = [OTHER]
    parted: set[Node] = set()  # nodes with a value of their own below them
    waiting = list(range(len(paths)))
    for level in range(rungs.height):
        frequent = _frequent(level, waiting, paths, counts, (least, noise))
        labels += [f"{node[1]}, {OTHER}" if node in parted else node[1] for node in frequent]
        parted |= {above for path in paths if path[level] in frequent for above in path[level + 1 :]}
        waiting = [code for code in waiting if paths[code][level] not in frequent]
    return Domain(labels, policy, column)


def _frequent(
    level: int, waiting: list[int], paths: list[list[Node]], counts: Int64s, asked: tuple[float, float]
) -> set[Node]:
    """Nodes of one level that hold enough of what has no place below them."""
    held: Counter[Node] = Counter()
    parts: Counter[Node] = Counter()
    for code in waiting:
        held[paths[code][level]] += int(counts[code])
        parts[paths[code][level]] += 1
    least, noise = asked
    return {node for node, count in held.items() if count >= max(least, noise * math.sqrt(parts[node]))}


def _paths(rungs: Ladder) -> list[list[Node]]:
    """Per value, its nodes from the value itself up to `*`."""
    labels = [names(level) for level in rungs.labels]
    return [
        [(level, labels[level][table[code]]) for level, table in enumerate(rungs.tables)]
        for code in range(len(rungs.tables[0]))
    ]
