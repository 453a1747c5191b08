"""Variants of one sensitive value: ten ways to write a value are not ten values.

Guarantee: no two values of a sensitive column that reach an engine are equal after Unicode normalization (NFKC), ignoring
    case, spaces, invisible characters, foreign letters that look like Latin ones in a Latin word, and the dot of an ICD-10
    code; a missing value and an empty one are equal.
Not covered: synonyms, abbreviations and misspellings.
Cost: one pass over the distinct values.
Reference: The Unicode Consortium, UAX 15, normalization forms.
Differences from the paper: none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.cells import canonical_form


def merge_variants(table: pa.Table, policy: Policy, known: Collection[str | None] = ()) -> pa.Table:
    """Return the table with one form per sensitive value: merges variants where the policy says so, else refuses them.

    Values that came earlier (`known`) keep their form.
    """
    for name in (name for name in policy.sensitive if name in table.column_names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        counts = pc.value_counts(column)
        values, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
        if known and all(value in known for value in values):
            continue
        best = _most_frequent(values, times) | {canonical_form(value): value for value in known}
        variants = [n for value, n in zip(values, times, strict=True) if best[canonical_form(value)] != value]
        if not variants:
            continue
        if not policy.columns[name].normalize:
            raise DataError(
                f"Column '{name}': {len(variants):,} values in {sum(variants):,} records are variants of other values in the column "
                "(case, spaces, invisible characters, the dot of a code, missing and empty).",
                hint=f"Write {name}: {{role: sensitive, normalize: true}} to merge them, or correct the data.",
            )
        at = pc.index_in(column, pa.array(values, column.type))
        merged = pa.array([best[canonical_form(value)] for value in values], column.type).take(at.combine_chunks())
        table = table.set_column(table.column_names.index(name), name, merged)
    return table


def refuse_variants(labels: Iterable[str | None], column: str) -> None:
    """Refuse a list of possible values that contains variants of one value."""
    labels = list(labels)
    repeats = len(labels) - len({canonical_form(label) for label in labels})
    if repeats:
        raise PolicyError(
            f"Column '{column}': {repeats:,} of the {len(labels):,} values in the prior or hierarchy are variants of another one.",
            hint="Merge their lines in the prior or the hierarchy: a candidate set must not contain one value twice.",
        )


def _most_frequent(values: list[str | None], times: list[int]) -> dict[str, str | None]:
    """Return the most frequent form of each value, the first in order among equals; a missing value before an empty one."""
    best: dict[str, tuple[tuple[bool, int, str], str | None]] = {}
    for value, n in zip(values, times, strict=True):
        rank = (value is not None, -n, value or "")
        key = canonical_form(value)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, value)
    return {key: value for key, (_, value) in best.items()}
