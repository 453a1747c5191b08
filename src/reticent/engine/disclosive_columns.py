"""Columns that are published beside a protected value and tell it, as the name of an illness beside its candidates.

Guarantee: a release is refused where one published column says nearly all that there is to know of the value; and under a prior, where
    nearly all persons who have one of its labels in common have the same value, beyond what the row of the prior says of them already.
    Groups claim nothing against readers who know how likely values are for a label.
Not covered: what several columns tell together, one of many labels, or whole numbers without a gap, more of them than values, as ages
    are; how far such readers come is measured when a prior is made (docs/veil.md). Of a stream the first large batch of a run is looked
    at, and no other; of tables that Spark veils, nothing.
Cost: a sample of the persons, counted a few times per column.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int32s, Int64s, Integers
from reticent.errors import GuaranteeError
from reticent.policy.cells import encode_cells
from reticent.policy.disclosure import compact_codes, discloses, pair_codes

# Persons who are looked at, and those of a first look; how many of them a label has: fewer tell by chance.
_SAMPLE, _FIRST_SAMPLE, _MIN_PER_LABEL = 20_000, 1_000, 20
# Persons of a label who have one value, all but a twentieth, though at most half of everybody like them has it.
_LARGE_GROUP, _NEARLY_ALL, _USUAL_SHARE = 50, 0.95, 0.5


def refuse_disclosive_columns(
    columns: Mapping[str, pa.ChunkedArray | pa.Array | tuple[Int32s, pa.Array]],
    values: Integers,
    *,
    hint: str,
    strata: Integers | None = None,
    persons: Integers | None = None,
) -> None:
    """Refuses published columns that tell the value beside them.

    Args:
        columns: as they are published, or their codes and different values.
        values: the code of each record's value.
        hint: the ways out.
        rows: what readers are taken to know of each record already, by number.
        persons: whose records they are, where a person may have several.

    Raises:
        GuaranteeError: some do; nothing was published.
    """
    at = _sample(len(values) if persons is None else persons)
    truth = compact_codes(np.asarray(values[at], dtype=np.int64) + 1)[0]  # -1 lies outside the domain
    known = np.zeros(len(at), dtype=np.int64) if strata is None else np.asarray(strata[at], dtype=np.int64)
    for name, column in columns.items():
        codes, different = (
            (column[0][at], column[1]) if isinstance(column, tuple) else encode_cells(column.take(pa.array(at)))
        )
        if len(different) > int(truth.max(initial=0)) + 1 and _is_consecutive(different):
            continue
        labels = codes.astype(np.int64)
        if _discloses_value(labels, truth, known) or (
            strata is not None and _has_disclosive_label(labels, truth, known)
        ):
            raise GuaranteeError(
                f"Column '{name}' tells the value that is protected; nothing was published.", hint=hint
            )


def _is_consecutive(labels: pa.Array) -> bool:
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


def _discloses_value(labels: Int64s, true_values: Int64s, known: Int64s) -> bool:
    """Whether the labels that most persons have say nearly all that there is to know, and the rows do not; a label of few says it by chance."""
    # The fewer records, the more a column seems to tell: what a first look does not see is not there.
    look = slice(None, None, max(1, len(labels) // _FIRST_SAMPLE))
    if not discloses(labels[look], true_values[look]):
        return False
    some = _in_large_group(labels, _MIN_PER_LABEL)
    if 2 * np.count_nonzero(some) <= len(some):
        return False
    return discloses(labels[some], true_values[some]) and not discloses(known[some], true_values[some])


def _has_disclosive_label(labels: Int64s, true_values: Int64s, known: Int64s) -> bool:
    """Whether all but few persons of a label have one value that is not usual where they are."""
    cells, meant = compact_codes(pair_codes(labels, known))
    large = _in_large_group(cells, _LARGE_GROUP)
    if not large.any():
        return False
    place, of = compact_codes(cells[large])
    whole = _in_large_group(known, _LARGE_GROUP)
    row, rows = compact_codes(known[whole])
    size = int(true_values.max()) + 1
    usual = _shares(row, true_values[whole], size)[np.searchsorted(rows, meant[of] % (int(known.max()) + 1))]
    return bool(((_shares(place, true_values[large], size) >= _NEARLY_ALL) & (usual <= _USUAL_SHARE)).any())


def _in_large_group(groups: Int64s, least: int) -> Bools:
    """Which records have enough others of their group beside them."""
    place = compact_codes(groups)[0]
    return np.asarray(np.bincount(place)[place] >= least)


def _shares(groups: Int64s, values: Int64s, size: int) -> Floats:
    """Per group the shares of the values."""
    counts = np.bincount(groups * size + values, minlength=(int(groups.max()) + 1) * size).reshape(-1, size)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
