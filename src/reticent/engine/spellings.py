"""Spellings of one sensitive value: ten ways to write it are not ten values.

Guarantee: no two values of a sensitive column that reach an engine are the same after Unicode normalisation (NFKC), without
    regard to case, spaces and invisible characters; a missing value and an empty one are the same.
Not covered: synonyms, abbreviations and misspellings.
Cost: one pass over the distinct values.
Reference: The Unicode Consortium, UAX 15, normalisation forms.
Differences from the paper: none.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import DataError

if TYPE_CHECKING:
    from reticent.policy import Policy


def folded(value: str | None) -> str:
    """What all spellings of a value share.

    >>> folded("HIV" + chr(0xA0)) == folded("hiv" + chr(0x200B)) == folded(" Hiv") == folded(chr(0xFF28) + "iv")
    True
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value or "").casefold())
    seen = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) != "Cf")
    return " ".join(seen.split())


def spelled(table: pa.Table, policy: Policy) -> pa.Table:
    """The table with one spelling per sensitive value: merged where the policy says so, refused where it does not."""
    for name in policy.sensitive:
        column = table.column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        counts = pc.value_counts(column)
        words, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
        best = _best(words, times)
        variants = [n for word, n in zip(words, times, strict=True) if best[folded(word)] != word]
        if not variants:
            continue
        if not policy.columns[name].normalise:
            raise DataError(
                f"Column '{name}': {len(variants):,} values in {sum(variants):,} records are other spellings of values that "
                "occur as well (case, spaces, invisible characters, missing and empty).",
                hint=f"Write {name}: {{role: sensitive, normalise: true}} to merge them, or correct the data.",
            )
        at = pc.index_in(column, pa.array(words, column.type))
        merged = pa.array([best[folded(word)] for word in words], column.type).take(at.combine_chunks())
        table = table.set_column(table.column_names.index(name), name, merged)
    return table


def _best(words: list[str | None], times: list[int]) -> dict[str, str | None]:
    """The most frequent spelling of each value, the first in order among equals; a missing value before an empty one."""
    best: dict[str, tuple[tuple[bool, int, str], str | None]] = {}
    for word, n in zip(words, times, strict=True):
        rank = (word is not None, -n, word or "")
        key = folded(word)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, word)
    return {key: word for key, (_, word) in best.items()}
