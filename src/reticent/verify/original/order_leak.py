"""Whether rows of a generalised table stand in an order that tells who they are, beside the input.

A row that only one row of the input can be is known. The places of these say whether the table, or every class of it, stands in the
order of the input or of an exact quasi-identifier.

Guarantee: where the finding holds, neither goes with the place beyond chance; or rows stand in the order of what they show.
Not covered: rows that several of the input can be; an order that follows something which is not in the input.
Cost: one sort of the rows for each column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.verify.groups import number_rows, rank_cells
from reticent.verify.result import Finding
from reticent.verify.row_order import check_shuffle, drift

if TYPE_CHECKING:
    from reticent.verify.original.persons import InputColumns

_FEW, _DRIFT = 30, 5.0
CLAIM = "rows stand in an order that tells nothing"


def check_order_leak(shown: pa.Table, source: InputColumns, places: Int64s, policy: Policy) -> list[Finding]:
    """The finding about a table and its input, where enough rows are known; `places` tells them, and -1 for the others."""
    known = np.flatnonzero(places >= 0)
    if len(known) < _FEW or _is_sorted_by_content(shown):
        return []
    quasi = [name for name in policy.quasi if name in shown.column_names and policy.columns[name].transform is None]
    row, classes = places[known], number_rows(shown, quasi)[0][known]
    worst = 0.0
    for cells in (row, *(rank_cells(source[name])[row] for name in quasi)):
        worst = max(worst, abs(drift(cells)), abs(_rise_score(cells, classes)))
    kept = check_shuffle(row)
    return [Finding(CLAIM, kept.holds and worst < _DRIFT, round(worst, 2), _DRIFT)]


def _is_sorted_by_content(shown: pa.Table) -> bool:
    """Whether rows stand by what they show, column after column, what is missing first or last."""
    for last in (False, True):
        place = np.zeros(shown.num_rows, dtype=np.int64)
        for name in shown.column_names:
            rank = rank_cells(shown[name], missing_last=last)
            place = np.unique(place * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)[1].reshape(-1)
        if bool((place[1:] >= place[:-1]).all()):
            return True
    return False


def _rise_score(cells: Int64s, classes: Int64s) -> float:
    """How much more often cells rise than fall inside classes, in standard deviations of a random order."""
    order = np.argsort(classes, kind="stable")
    step = np.sign(np.diff(cells[order]))[np.diff(classes[order]) == 0]
    moved = int(np.count_nonzero(step))
    # Neighbouring steps of a random order go against one another: a third of the spread of independent ones.
    return float(step.sum()) / math.sqrt(moved) if moved else 0.0
