"""Warns of identifier variants: person identifiers that differ only in case or leading zeros. They are not merged.

`p7` and `P7`, or `007` in a file and 7 in a spreadsheet, may be one person or two. If one person counts as two, two veils show the same
true value. If two persons count as one, they share a veil and an erasure. Only the custodian knows, so the log says how many there are.

Guarantee: none; a warning in the log with counts and no identifier.
Not covered: streams; other differences; more than 20,000 persons of a table who are new to a store.
Cost: one scan of the bytes; 0.3 microseconds per identifier if both cases or leading zeros occur.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import UInt64s

LOG = logging.getLogger(__name__)
LEADING_ZEROS, _WITHOUT_ZEROS = r"(^|[^0-9])0+([0-9])", r"\1\2"
_MAX_WIDTH, _SAMPLE = 12, 20_000
_HINT = "They count as different persons. If they are the same, correct them before publishing: two veils of one person disclose the value."


def warn_of_variants(names: pa.ChunkedArray) -> int:
    """Warn of identifier variants within a table. Return how many identifiers are variants of another one."""
    if not pa.types.is_string(names.type) or not _may_have_variants(names):
        return 0
    different = pc.unique(names.combine_chunks()).drop_null()
    return warn_of_count(len(different) - len(pc.unique(_normalize_names(different))))


def warn_of_count(number: int) -> int:
    """Log a warning with the number of identifier variants, if there are any."""
    if number:
        LOG.warning(
            "%s person identifiers differ from another one only in case or leading zeros. %s", f"{number:,}", _HINT
        )
    return number


def warn_of_new_variants(names: pa.Array, hashes: Callable[[pa.Array], UInt64s], known: UInt64s) -> int:
    """Warn of new persons whose identifiers are variants of known ones (given by hash). Return their number in the sample."""
    sample = names.take(pa.array(np.unique(np.linspace(0, len(names) - 1, min(len(names), _SAMPLE)).astype(np.int64))))
    sample = sample.cast(pa.string())
    alike = np.zeros(len(sample), dtype=np.bool_)
    for variants in _possible_variants(sample):
        alike |= np.isin(hashes(variants), known)
    if number := int(alike.sum()):
        message = "%s of %s new person identifiers differ from a known one only in case or leading zeros. %s"
        LOG.warning(message, f"{number:,}", f"{len(sample):,}", _HINT)
    return number


def _normalize_names(names: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.replace_substring_regex(names, pattern=LEADING_ZEROS, replacement=_WITHOUT_ZEROS))


def _possible_variants(names: pa.Array) -> list[pa.Array]:
    """Return likely variants of identifiers, to compare with identifiers that are known only by their hashes."""
    loose = _normalize_names(names)
    words = [loose, pc.utf8_upper(loose), pc.utf8_lower(names), pc.utf8_upper(names)]
    if pc.any(pc.utf8_is_digit(names)).as_py():
        words += [pc.utf8_lpad(loose, width, "0") for width in range(2, _MAX_WIDTH + 1)]
    return words


def _may_have_variants(names: pa.ChunkedArray) -> bool:
    """Whether both cases, letters beyond ASCII or ambiguous leading zeros occur. A fast test that may say yes wrongly.

    Leading zeros are unambiguous if all identifiers have the same length and at most one number, as in most registers.
    """
    seen, lengths, leading, several = np.zeros(256, dtype=np.bool_), set[int](), False, False
    for chunk in names.chunks:
        _, places, text = chunk.buffers()
        if text is None or not len(chunk):
            continue
        ends = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        letters, ends = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]], ends - ends[0]
        if not len(letters):
            continue
        seen[letters] = True
        digit = letters - np.uint8(ord("0")) < 10
        begins = digit & ~np.append(False, digit[:-1])
        firsts = ends[:-1][ends[:-1] < ends[-1]]
        begins[firsts] = digit[firsts]
        leading |= bool((letters[begins] == ord("0")).any())
        owners = np.searchsorted(ends, np.flatnonzero(begins), side="right")
        several |= bool((owners[1:] == owners[:-1]).any())
        sizes = np.diff(ends)
        lengths |= {int(sizes.min()), int(sizes.max())}
    upper, lower = seen[ord("A") : ord("Z") + 1].any(), seen[ord("a") : ord("z") + 1].any()
    return bool(seen[128:].any() or (upper and lower) or (leading and (several or len(lengths) > 1)))
