"""Mondrian: multidimensional partitioning by cuts at the median.

Guarantee: every class satisfies the k, l and t of the policy; strict cuts keep equal quasi-identifiers in one class.

Not covered: as `optimal`. The places of the cuts depend on the data (minimality).

Cost: O(n log n) per attribute in the native core, both halves of a large cut side by side.

Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.

Differences from the paper: l and t stop a cut as k does; next to the median up to eight cuts are tried, nearest first;
attributes with a tree are cut at the children of their common node; classes are published by their tightest interval,
set or node. Nothing is suppressed: if the whole table fails the policy, the release is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent import _core
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.cuts import Cuts
from reticent.engine.table.encoded_table import EncodedTable, order
from reticent.engine.table.generalised import Outcome, publish
from reticent.engine.table.levels import Levels
from reticent.engine.table.people import settled
from reticent.errors import GuaranteeError

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.policy.hierarchy import Ladder
    from reticent.release import Release

Axis = tuple["npt.NDArray[np.int32]", "npt.NDArray[np.float64]", "list[npt.NDArray[np.int32]]"]


class Mondrian(TablePublisher):
    """Mondrian partitioning of one table."""

    method = "mondrian"

    def release(self, table: pa.Table) -> Release:
        """Cuts as long as every part satisfies the policy, or refuses when the whole does not."""
        encoded = EncodedTable.from_table(self.policy, table)
        release, self._places = publish(encoded, table, settled(encoded, self._cut), self.rng)
        return release

    def _cut(self, encoded: EncodedTable) -> Outcome:
        sights, classes = partition(encoded)
        attributes: dict[str, Levels | Cuts] = {}
        for name, ((ranks, scale, tree), values) in sights.items():
            if tree:
                ladder = encoded.ladders[name]
                attributes[name] = Levels(ladder, ranks, common_levels(ladder, ranks, classes))
            else:
                attributes[name] = Cuts(values, ranks, scale, classes, numeric=_numeric(values))
        explain = {"classes": int(classes.max()) + 1, "cuts": self.policy.table.cuts}
        return Outcome(self.method, attributes, np.zeros(encoded.rows, dtype=bool), explain)


def partition(encoded: EncodedTable) -> tuple[dict[str, tuple[Axis, list[object]]], npt.NDArray[np.int64]]:
    """Every attribute as Mondrian sees it, and the class of each row."""
    sights = {name: _sight(encoded, name) for name in encoded.quasi}
    axes = [axis for axis, _ in sights.values()]
    relaxed = encoded.policy.table.cuts == "relaxed"
    parts = _core.table.mondrian(axes, encoded.sensitive, encoded.model, relaxed=relaxed)
    if not parts.holds:
        raise GuaranteeError(
            "Even the whole table as one class does not meet the policy; nothing was published.",
            hint="Lower k or l, or raise t.",
        )
    return sights, parts.classes


def _sight(encoded: EncodedTable, name: str) -> tuple[Axis, list[object]]:
    """An attribute as Mondrian sees it: in the order of its values, or by its tree."""
    ladder, codes = encoded.ladders[name], encoded.codes(name)
    values = encoded.columns.dictionaries[name].values.to_pylist()
    if ladder.numeric is None and encoded.policy.columns[name].hierarchy is not None:
        return (codes, np.linspace(0, 1, len(values)), list(ladder.tables)), values
    places = order(values)
    ranks = np.empty(len(values), dtype=np.int32)
    ranks[places] = np.arange(len(values), dtype=np.int32)
    ordered = [values[place] for place in places]
    return (ranks[codes], _scale(ordered), []), ordered


def _numeric(values: list[object]) -> bool:
    known = [value for value in values if value is not None]
    try:
        return bool(known) and all(np.isfinite(float(value)) for value in known)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _scale(values: list[object]) -> npt.NDArray[np.float64]:
    """Positions from 0 to 1: by size where all values are numbers, evenly where not."""
    if not _numeric(values) or values[0] is None:
        return np.linspace(0, 1, len(values))
    numbers = np.array([float(value) for value in values])  # type: ignore[arg-type]
    return np.asarray((numbers - numbers[0]) / ((numbers[-1] - numbers[0]) or 1.0))


def common_levels(
    ladder: Ladder, codes: npt.NDArray[np.int32], classes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Per row, the lowest level at which its whole class shares a node."""
    count = int(classes.max()) + 1
    levels = np.full(count, ladder.height, dtype=np.int64)
    for level in range(ladder.height - 1, -1, -1):
        nodes = ladder.tables[level][codes]
        low, high = np.full(count, np.iinfo(np.int32).max), np.full(count, -1)
        np.minimum.at(low, classes, nodes)
        np.maximum.at(high, classes, nodes)
        levels[low == high] = level
    return levels[classes]
