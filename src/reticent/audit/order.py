"""Orders that tell nothing: rows and group numbers of Anatomy must follow from what is public anyway.

Guarantee: where the findings hold, positions and numbers are a function of the published quasi-identifiers alone, and
    of the values' own text in the second table; so they cannot say who has which value.
Not covered: groups whose rows read alike, which may stand in any order among themselves.
Cost: one sort of the rows.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.verdict import Finding, none_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_DRIFT = 5.0
"""Standard deviations: a random order is beyond them once in a million and more."""
_TOGETHER, _FEW = 20, 100
Row = tuple[tuple[bool, str], ...]


def check_order(qit: pa.Table, st: pa.Table) -> list[Finding]:
    """Rows by group and text; groups numbered from 0 in the order of their rows."""
    numbers, values = _numbers(st["group"].to_pylist()), st["value"].to_pylist()
    lines = [(number, _key(value)) for number, value in zip(numbers, values, strict=True)]
    groups = _numbers(qit["group"].to_pylist())
    names = [name for name in qit.column_names if name != "group"]
    columns = [[_key(cell) for cell in qit[name].to_pylist()] for name in names]
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * qit.num_rows
    placed = list(zip(groups, rows, strict=True))
    lists: dict[int, list[Row]] = {}
    for group, row in placed:
        lists.setdefault(group, []).append(row)
    inner = [sorted(lists[group]) for group in sorted(lists)]
    return [
        none_of("rows of 'st' stand by group and value", sum(a > b for a, b in pairwise(lines))),
        none_of("rows of 'qit' stand by group and text", sum(a > b for a, b in pairwise(placed))),
        none_of("groups are numbered from 0", sum(a != b for a, b in enumerate(sorted(lists)))),
        none_of("groups are numbered in the order of their rows", sum(a > b for a, b in pairwise(inner))),
    ]


def check_shuffled(places: NDArray[np.int64]) -> Finding:
    """Whether positions depend on those in the input: their rank correlation, and neighbours that stayed neighbours."""
    size = len(places)
    ranks = np.argsort(np.argsort(places, kind="stable"), kind="stable")
    spread = float(np.std(ranks)) if size else 0.0
    drift = float(np.corrcoef(ranks, np.arange(size))[0, 1]) * math.sqrt(size - 1) if spread else 0.0
    # In a random order about two pairs of neighbours stay together, whatever the size.
    together = int((np.abs(np.diff(ranks)) == 1).sum())
    holds = abs(drift) < _DRIFT and (size < _FEW or together < _TOGETHER)
    return Finding("rows do not stand in the order of the input", holds, round(abs(drift), 2), _DRIFT)


def _key(cell: str | None) -> tuple[bool, str]:
    return (cell is not None, cell or "")


def _numbers(cells: list[str | None]) -> list[int]:
    """Group numbers; what is no number stands before all."""
    return [int(cell) if cell is not None and cell.isdecimal() else -1 for cell in cells]
