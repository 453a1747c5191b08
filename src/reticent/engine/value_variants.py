"""Spellings of one sensitive value: ten ways to write it are not ten values.

Guarantee: no two values of a sensitive column that reach an engine are the same after Unicode normalisation (NFKC), without
    regard to case, spaces, invisible characters, foreign letters that look like Latin ones in a Latin word, and the dot of an ICD-10
    code; a missing value and an empty one are the same.
Not covered: synonyms, abbreviations and misspellings.
Cost: one pass over the distinct values.
Reference: The Unicode Consortium, UAX 15, normalisation forms.
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
    """The table with one spelling per sensitive value: merged where the policy says so, refused where it does not.

    Values that came earlier (`known`) keep their spelling.
    """
    for name in (name for name in policy.sensitive if name in table.column_names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        counts = pc.value_counts(column)
        words, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
        if known and all(word in known for word in words):
            continue
        best = _most_frequent(words, times) | {canonical_form(word): word for word in known}
        variants = [n for word, n in zip(words, times, strict=True) if best[canonical_form(word)] != word]
        if not variants:
            continue
        if not policy.columns[name].normalize:
            raise DataError(
                f"Column '{name}': {len(variants):,} values in {sum(variants):,} records are other spellings of values that "
                "occur as well (case, spaces, invisible characters, the dot of a code, missing and empty).",
                hint=f"Write {name}: {{role: sensitive, normalise: true}} to merge them, or correct the data.",
            )
        at = pc.index_in(column, pa.array(words, column.type))
        merged = pa.array([best[canonical_form(word)] for word in words], column.type).take(at.combine_chunks())
        table = table.set_column(table.column_names.index(name), name, merged)
    return table


def refuse_variants(labels: Iterable[str | None], column: str) -> None:
    """Refuses a list of possible values in which one is written in several ways."""
    labels = list(labels)
    twins = len(labels) - len({canonical_form(label) for label in labels})
    if twins:
        raise PolicyError(
            f"Column '{column}': {twins:,} of the {len(labels):,} values that the policy lists are other spellings of another.",
            hint="Merge their lines in the prior or the hierarchy: a set of candidates must not offer one value twice.",
        )


def _most_frequent(words: list[str | None], times: list[int]) -> dict[str, str | None]:
    """The most frequent spelling of each value, the first in order among equals; a missing value before an empty one."""
    best: dict[str, tuple[tuple[bool, int, str], str | None]] = {}
    for word, n in zip(words, times, strict=True):
        rank = (word is not None, -n, word or "")
        key = canonical_form(word)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, word)
    return {key: word for key, (_, word) in best.items()}
