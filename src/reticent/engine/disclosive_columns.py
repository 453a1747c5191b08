"""Refuse published columns that disclose the protected value, such as the name of an illness next to its candidates.

Guarantee: a release is refused if one published column determines nearly all of the value; and under a prior, if nearly all
    persons with one of its labels have the same value, beyond what their stratum says already. Group methods claim nothing against
    attackers who know how likely values are for a label.
Not covered: several columns together; a column of many labels; consecutive integers, more of them than values, such as ages. How far
    attackers get with them is measured when a prior is made (docs/veil.md). Of a stream only the first large batch of a run
    is checked.
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

# Persons to check, and those of a first check; fewest persons of a label: fewer disclose by chance.
_SAMPLE, _FIRST_SAMPLE, _MIN_PER_LABEL = 20_000, 1_000, 20
# Fewest persons of a label; share of them with one value; largest usual share of that value in their stratum.
_LARGE_GROUP, _NEARLY_ALL, _USUAL_SHARE = 50, 0.95, 0.5


def refuse_disclosive_columns(
    columns: Mapping[str, pa.ChunkedArray | pa.Array | tuple[Int32s, pa.Array]],
    values: Integers,
    *,
    hint: str,
    strata: Integers | None = None,
    persons: Integers | None = None,
) -> None:
    """Refuse published columns that disclose the value.

    Args:
        columns: the published columns, or their codes and distinct values.
        values: the code of each record's value.
        hint: what the user can do.
        strata: the stratum of each record, whose shares the attacker knows already.
        persons: the person of each record, where a person may have several.

    Raises:
        GuaranteeError: a column discloses the value; nothing was published.
    """
    at = _sample(len(values) if persons is None else persons)
    true_values = compact_codes(np.asarray(values[at], dtype=np.int64) + 1)[0]  # -1 lies outside the domain
    known = np.zeros(len(at), dtype=np.int64) if strata is None else np.asarray(strata[at], dtype=np.int64)
    for name, column in columns.items():
        codes, distinct = (
            (column[0][at], column[1]) if isinstance(column, tuple) else encode_cells(column.take(pa.array(at)))
        )
        if len(distinct) > int(true_values.max(initial=0)) + 1 and _is_consecutive(distinct):
            continue
        labels = codes.astype(np.int64)
        if _discloses_value(labels, true_values, known) or (
            strata is not None and _has_disclosive_label(labels, true_values, known)
        ):
            raise GuaranteeError(f"Column '{name}' discloses the protected value; nothing was published.", hint=hint)


def _is_consecutive(labels: pa.Array) -> bool:
    """Whether labels are consecutive integers, such as ages or days: these are amounts and name no value."""
    try:
        numbers = labels.drop_null().cast(pa.string()).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return False
    return len(numbers) > 0 and int(numbers.max()) - int(numbers.min()) + 1 == len(numbers)


def _sample(persons: Integers | int) -> Int64s:
    """Return a sample of the records, one of each person."""
    size = persons if isinstance(persons, int) else len(persons)
    at = np.arange(0, size, max(1, -(-size // _SAMPLE)))
    return at if isinstance(persons, int) else at[np.sort(np.unique(persons[at], return_index=True)[1])]


def _discloses_value(labels: Int64s, true_values: Int64s, known: Int64s) -> bool:
    """Whether frequent labels determine nearly all of the value, and the strata do not; rare labels do so by chance."""
    # A smaller sample makes a column look more disclosive: a column that passes here is not.
    subset = slice(None, None, max(1, len(labels) // _FIRST_SAMPLE))
    if not discloses(labels[subset], true_values[subset]):
        return False
    frequent = _in_large_group(labels, _MIN_PER_LABEL)
    if 2 * np.count_nonzero(frequent) <= len(frequent):
        return False
    return discloses(labels[frequent], true_values[frequent]) and not discloses(known[frequent], true_values[frequent])


def _has_disclosive_label(labels: Int64s, true_values: Int64s, known: Int64s) -> bool:
    """Whether nearly all persons of a label have one value that is not usual in their stratum."""
    cells, cell_codes = compact_codes(pair_codes(labels, known))
    large = _in_large_group(cells, _LARGE_GROUP)
    if not large.any():
        return False
    place, cell_numbers = compact_codes(cells[large])
    in_large_stratum = _in_large_group(known, _LARGE_GROUP)
    stratum, strata = compact_codes(known[in_large_stratum])
    size = int(true_values.max()) + 1
    own_stratum = np.searchsorted(strata, cell_codes[cell_numbers] % (int(known.max()) + 1))
    usual = _shares(stratum, true_values[in_large_stratum], size)[own_stratum]
    return bool(((_shares(place, true_values[large], size) >= _NEARLY_ALL) & (usual <= _USUAL_SHARE)).any())


def _in_large_group(groups: Int64s, least: int) -> Bools:
    """Return which records are in a group of at least `least` records."""
    place = compact_codes(groups)[0]
    return np.asarray(np.bincount(place)[place] >= least)


def _shares(groups: Int64s, values: Int64s, size: int) -> Floats:
    """Return the shares of the values in each group."""
    counts = np.bincount(groups * size + values, minlength=(int(groups.max()) + 1) * size).reshape(-1, size)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
