"""Check that the row order of a generalized table does not disclose the order of the input or an exact quasi-identifier.

A published row is known if only one row of the input fits. The positions of known rows show whether the table, or each of its
classes, follows the order of the input or of an exact quasi-identifier.

Guarantee: if the finding holds, an attacker who knows the input's order or a person's exact quasi-identifiers learns nothing from
    the positions of known rows beyond chance, or rows are sorted by their published content.
Not covered: rows that several rows of the input fit; an order by something that is not in the input.
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
from reticent.verify.result import Finding, FormCheck
from reticent.verify.row_order import check_shuffle, drift

if TYPE_CHECKING:
    from reticent.verify.original.persons import InputColumns

_FEW, _DRIFT = 30, 5.0
CLAIM = "the order of rows discloses nothing"


def check_order_leak(shown: pa.Table, source: InputColumns, places: Int64s, policy: Policy) -> list[Finding]:
    """Check the order of a table against its input if enough rows are known; `places` is -1 for unknown rows."""
    known = np.flatnonzero(places >= 0)
    if len(known) < _FEW or _is_sorted_by_content(shown):
        return []
    quasi = [name for name in policy.quasi if name in shown.column_names and policy.columns[name].transform is None]
    row, classes = places[known], number_rows(shown, quasi)[0][known]
    worst = 0.0
    for cells in (row, *(rank_cells(source[name])[row] for name in quasi)):
        worst = max(worst, abs(drift(cells)), abs(_rise_score(cells, classes)))
    shuffle = check_shuffle(row)
    return [FormCheck(CLAIM, shuffle.holds and worst < _DRIFT, round(worst, 2), _DRIFT)]


def _is_sorted_by_content(shown: pa.Table) -> bool:
    """Return whether rows are sorted by their content, column by column, missing cells first or last."""
    for last in (False, True):
        place = np.zeros(shown.num_rows, dtype=np.int64)
        for name in shown.column_names:
            rank = rank_cells(shown[name], missing_last=last)
            place = np.unique(place * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)[1].reshape(-1)
        if bool((place[1:] >= place[:-1]).all()):
            return True
    return False


def _rise_score(cells: Int64s, classes: Int64s) -> float:
    """Return how much more often cells rise than fall inside classes, in standard deviations of a random order."""
    order = np.argsort(classes, kind="stable")
    step = np.sign(np.diff(cells[order]))[np.diff(classes[order]) == 0]
    moved = int(np.count_nonzero(step))
    # Adjacent steps of a random order are negatively correlated: a third of the variance of independent steps.
    return float(step.sum()) / math.sqrt(moved) if moved else 0.0
