"""Columns that are published beside a protected value and tell it, as the name of an illness beside its candidates.

Guarantee: a release is refused where one published column says nearly all that there is to know of the value; and under a prior, where
    nearly all persons who have one of its labels in common have the same value, beyond what the row of the prior says of them already.
    Groups claim nothing against readers who know how likely values are for a label.
Not covered: what several columns tell together, one of many labels, or whole numbers without a gap, more of them than values, as ages are; how far such readers come is measured when a prior is made
    (docs/veil.md). Of a stream the first large batch of a run is looked at, and no other.
Cost: a sample of the persons, sorted once per column.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s, Integers
from reticent.errors import GuaranteeError
from reticent.policy.cells import coded
from reticent.policy.telling import pairs, tells

# Persons who are looked at, and how many of them a label has: fewer tell by chance.
_SAMPLE, _EACH = 20_000, 20
# Persons of a label who have one value, all but a twentieth, though at most half of everybody like them has it.
_CROWD, _NEARLY, _USUAL = 50, 0.95, 0.5


def refuse_tellers(
    columns: Mapping[str, pa.ChunkedArray | pa.Array],
    values: Integers,
    *,
    hint: str,
    rows: Integers | None = None,
    persons: Integers | None = None,
) -> None:
    """Refuses published columns that tell the value beside them.

    Args:
        columns: as they are published.
        values: the code of each record's value.
        hint: the ways out.
        rows: what readers are taken to know of each record already, by number.
        persons: whose records they are, where a person may have several.

    Raises:
        GuaranteeError: some do; nothing was published.
    """
    at = _sample(len(values) if persons is None else persons)
    truth = np.unique(values[at], return_inverse=True)[1].reshape(-1)
    known = np.zeros(len(at), dtype=np.int64) if rows is None else np.asarray(rows[at], dtype=np.int64)
    for name, column in columns.items():
        codes, different = coded(column.take(pa.array(at)))
        if len(different) > int(truth.max(initial=0)) + 1 and _counts_on(different):
            continue
        labels = codes.astype(np.int64)
        if _tells_all(labels, truth, known) or (rows is not None and _gives_away(labels, truth, known)):
            raise GuaranteeError(
                f"Column '{name}' tells the value that is protected; nothing was published.", hint=hint
            )


def _counts_on(labels: pa.Array) -> bool:
    """Whether labels are whole numbers without a gap, as ages or days: amounts, which name no value; in data that were made by counting on they seem to."""
    try:
        numbers = labels.drop_null().cast(pa.string()).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return False
    return len(numbers) > 0 and int(numbers.max()) - int(numbers.min()) + 1 == len(numbers)


def _sample(persons: Integers | int) -> Int64s:
    """Some of the records, one of each person."""
    size = persons if isinstance(persons, int) else len(persons)
    at = np.arange(0, size, max(1, -(-size // _SAMPLE)))
    return at if isinstance(persons, int) else at[np.sort(np.unique(persons[at], return_index=True)[1])]


def _tells_all(labels: Int64s, truth: Int64s, known: Int64s) -> bool:
    """Whether the labels that most persons have say nearly all that there is to know, and the rows do not; a label of few says it by chance."""
    some = _crowded(labels, _EACH)
    if 2 * np.count_nonzero(some) <= len(some):
        return False
    return tells(labels[some], truth[some]) and not tells(known[some], truth[some])


def _gives_away(labels: Int64s, truth: Int64s, known: Int64s) -> bool:
    """Whether all but few persons of a label have one value that is not usual where they are."""
    cells = pairs(labels, known)
    large = _crowded(cells, _CROWD)
    _, first, place = np.unique(cells[large], return_index=True, return_inverse=True)
    if not len(first):
        return False
    whole = _crowded(known, _CROWD)
    rows, row = np.unique(known[whole], return_inverse=True)
    size = int(truth.max()) + 1
    usual = _shares(row.reshape(-1), truth[whole], size)[np.searchsorted(rows, known[large][first])]
    return bool(((_shares(place.reshape(-1), truth[large], size) >= _NEARLY) & (usual <= _USUAL)).any())


def _crowded(groups: Int64s, least: int) -> Bools:
    """Which records have enough others of their group beside them."""
    _, place, crowd = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(crowd[place.reshape(-1)] >= least)


def _shares(groups: Int64s, values: Int64s, size: int) -> Floats:
    """Per group the shares of the values."""
    counts = np.bincount(groups * size + values, minlength=(int(groups.max()) + 1) * size).reshape(-1, size)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
