"""What else could be released: the neighbours of a node of the lattice, and the same table at other strengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.encode import encode_table
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.hierarchy import ladder
from reticent.publication import table as tables

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

# Searches on more rows would keep the visitor waiting; shares and losses of a sample tell enough for a picture.
_SAMPLE = 5_000
_STRENGTHS = (2, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class Neighbour:
    """One column one level finer or coarser."""

    column: str
    finer: bool
    small: int
    rows: int
    fits: bool

    @property
    def words(self) -> str:
        """In a sentence."""
        step = "finer" if self.finer else "coarser"
        if self.small:
            return (
                f"{self.column} one level {step}: {self.small:,} of {self.rows:,} records in groups that are too small"
            )
        return f"{self.column} one level {step}: every group is large enough"


@dataclass(frozen=True)
class Point:
    """The same table at another strength."""

    name: str
    risk: float
    loss: float


def neighbours(table: pa.Table, policy: Policy, levels: dict[str, int]) -> list[Neighbour]:
    """All nodes one step from the one that was released, judged by k and the suppression allowed."""
    encoded = encode_table(table, list(policy.quasi))
    rungs = {
        name: ladder(policy.columns[name].hierarchy, encoded.dictionaries[name].values, column=name, base=policy.base)
        for name in policy.quasi
    }
    choices = []
    for name in policy.quasi:
        for step in (-1, 1):
            level = levels[name] + step
            if not 0 <= level <= rungs[name].height:
                continue
            at = {**levels, name: level}
            nodes = [rungs[other].tables[at[other]][encoded.codes[other]] for other in policy.quasi]
            small = _in_small_groups(nodes, policy.privacy.k or 1)
            fits = small <= policy.privacy.suppression * table.num_rows
            choices.append(Neighbour(name, step < 0, small, table.num_rows, fits))
    return choices


def _in_small_groups(nodes: list[npt.NDArray[Any]], k: int) -> int:
    key = np.zeros(len(nodes[0]), dtype=np.int64)
    for part in nodes:
        # Numbered anew at each step, so that the key never overflows.
        key = np.unique(key * (int(part.max()) + 1) + part, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(key)
    return int(sizes[sizes < k].sum())


def frontier(table: pa.Table, policy: Policy, method: str) -> list[Point]:
    """Risk and loss for several strengths of the policy's own model; strengths that cannot be met are left out."""
    sample = table.slice(0, _SAMPLE)
    points = []
    for strength in _STRENGTHS:
        changed = _with(policy, strength)
        if changed is None:
            continue
        try:
            release = tables.publish(sample, changed, method=method).release
        except GuaranteeError:
            continue
        name = f"k={strength}" if policy.privacy.k else f"l={strength}"
        points.append(Point(name, 1 / strength, float(release.metrics.get("loss", 0.0))))
    return points


def _with(policy: Policy, strength: int) -> Policy | None:
    settings = policy.to_dict()
    privacy = dict(settings.get("privacy", {}))
    if policy.privacy.k:
        privacy["k"] = strength
        if policy.privacy.l is not None and policy.privacy.l.l > strength:
            privacy.pop("l", None)
    elif policy.privacy.l is not None:
        privacy["l"] = strength
    else:
        return None
    return Policy.from_dict(settings | {"privacy": privacy}, base=policy.base)
