"""Whether rows of a generalised table stand in an order that tells who they are, beside the input.

A row that only one row of the input can be is known. The places of these say whether the table, or every class of it, stands in the
order of the input or of an exact quasi-identifier.

Guarantee: where the finding holds, neither goes with the place beyond chance; or rows stand in the order of what they show.
Not covered: rows that several of the input can be; an order that follows something which is not in the input.
Cost: some thousand rows are looked for, each among those of the input that have its values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.audit.groups import by_size, coded_column, codes, numbered
from reticent.audit.labels.meaning import stands_for
from reticent.audit.order import check_shuffled, drift
from reticent.audit.published import text_table
from reticent.audit.verdict import Finding

if TYPE_CHECKING:
    from reticent.audit.arrays import Codes
    from reticent.policy import Policy

_LOOKED, _PAIRS, _FEW = 2_000, 1 << 18, 30
_DRIFT = 5.0
CLAIM = "rows stand in an order that tells nothing"


def check_standing(shown: pa.Table, source: pa.Table, policy: Policy) -> list[Finding]:
    """The finding about a table and its input, where enough rows are known; none otherwise."""
    names = [name for name in shown.column_names if name in policy.columns and policy.columns[name].identifier is None]
    quasi = [name for name in names if name in policy.quasi]
    if shown.num_rows < _FEW or _by_itself(shown):
        return []
    place, row = _known(shown, source, quasi, [name for name in names if name not in quasi], policy)
    if len(place) < _FEW:
        return []
    classes = numbered(shown, quasi)[0][place]
    worst = 0.0
    for cells in (row, *(_ranks(source[name])[row] for name in quasi)):
        worst = max(worst, abs(drift(cells)), abs(_rises(cells, classes)))
    kept = check_shuffled(row)
    return [Finding(CLAIM, kept.holds and worst < _DRIFT, round(worst, 2), _DRIFT)]


def _by_itself(shown: pa.Table) -> bool:
    """Whether rows stand by what they show, column after column, what is missing first or last."""
    for last in (False, True):
        place = np.zeros(shown.num_rows, dtype=np.int64)
        for name in shown.column_names:
            rank = _ranks(shown[name], last=last)
            place = np.unique(place * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)[1].reshape(-1)
        if bool((place[1:] >= place[:-1]).all()):
            return True
    return False


def _ranks(column: pa.ChunkedArray, *, last: bool = False) -> Codes:
    """The place of each cell among the different ones: as numbers where all are, else by their text."""
    code, texts = codes(coded_column(column))
    return by_size(texts, missing_last=last)[code]


def _known(
    shown: pa.Table, source: pa.Table, quasi: list[str], words: list[str], policy: Policy
) -> tuple[Codes, Codes]:
    """Published rows that only one row of the input can be, in their order, and that row."""
    both = pa.concat_tables([text_table(part.select(words)) for part in (shown, source)]) if words else None
    keys = np.zeros(shown.num_rows + source.num_rows, dtype=np.int64) if both is None else numbered(both, words)[0]
    alike, size = numbered(shown, [*quasi, *words])
    single = np.flatnonzero(np.bincount(alike, minlength=size)[alike] == 1)
    order = np.argsort(keys[shown.num_rows :], kind="stable")
    first, behind = (np.searchsorted(keys[shown.num_rows :][order], keys[single], side) for side in ("left", "right"))
    some = np.unique(np.linspace(0, len(single) - 1, min(len(single), _LOOKED)).astype(np.int64))
    some = some[np.cumsum((behind - first)[some]) <= _PAIRS]
    many = (behind - first)[some]
    seat = np.repeat(np.arange(len(some)), many)
    row = order[np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first[some], many)]
    fit = np.ones(len(row), dtype=np.bool_)
    for name in quasi if len(row) else ():
        cells, labels = source[name].take(pa.array(row)), shown[name].take(pa.array(single[some][seat]))
        fit &= stands_for(coded_column(cells), coded_column(labels), policy, name)
    seat, row = seat[fit], row[fit]
    alone = np.bincount(seat, minlength=len(some))[seat] == 1
    return single[some][seat[alone]], row[alone]


def _rises(cells: Codes, classes: Codes) -> float:
    """How much more often cells rise than fall inside classes, in standard deviations of a random order."""
    order = np.argsort(classes, kind="stable")
    step = np.sign(np.diff(cells[order]))[np.diff(classes[order]) == 0]
    moved = int(np.count_nonzero(step))
    # Neighbouring steps of a random order go against one another: a third of the spread of independent ones.
    return float(step.sum()) / math.sqrt(moved) if moved else 0.0
