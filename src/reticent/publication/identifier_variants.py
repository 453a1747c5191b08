"""Namesakes: persons whose names differ in case or leading zeros alone, told of and not merged.

`p7` and `P7`, or `007` in a file and the number 7 of a spreadsheet, may be one person or two. Taken for two, one person would be veiled twice
over one truth; taken for one, two persons would share a veil and an erasure. Only the steward knows, so the steward is told how many there are.

Guarantee: none; a warning in the log, with counts and no name.
Not covered: streams; other differences; of the persons of a table who are new to a store that knows others, at most 20,000.
Cost: a look at the bytes; where they have both cases or leading zeros, 0.3 microseconds per name.
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
_HINT = (
    "They are taken for different persons. If they are not, correct the names before: two veils over one truth tell it."
)


def warn_of_variants(names: pa.ChunkedArray) -> int:
    """Warns of persons of a table who are namesakes of others in it; how many there are beyond one of each name."""
    if not pa.types.is_string(names.type) or not _may_have_variants(names):
        return 0
    different = pc.unique(names.combine_chunks()).drop_null()
    return warn_of_count(len(different) - len(pc.unique(_normalize_names(different))))


def warn_of_count(number: int) -> int:
    """Warns of so many persons who have the name of another."""
    if number:
        LOG.warning("%s persons have the name of another but for case or leading zeros. %s", f"{number:,}", _HINT)
    return number


def warn_of_new_variants(names: pa.Array, hashes: Callable[[pa.Array], UInt64s], known: UInt64s) -> int:
    """Warns of persons who are new to a store and namesakes of some whom it knows by their hashes; how many of those looked at."""
    some = names.take(pa.array(np.unique(np.linspace(0, len(names) - 1, min(len(names), _SAMPLE)).astype(np.int64))))
    some = some.cast(pa.string())
    alike = np.zeros(len(some), dtype=np.bool_)
    for other in _possible_variants(some):
        alike |= np.isin(hashes(other), known)
    if number := int(alike.sum()):
        words = (
            "%s of %s persons who are new to the store have the name of one it knows but for case or leading zeros. %s"
        )
        LOG.warning(words, f"{number:,}", f"{len(some):,}", _HINT)
    return number


def _normalize_names(names: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.replace_substring_regex(names, pattern=LEADING_ZEROS, replacement=_WITHOUT_ZEROS))


def _possible_variants(names: pa.Array) -> list[pa.Array]:
    """How else somebody may be written whose name is only known by its hash."""
    loose = _normalize_names(names)
    words = [loose, pc.utf8_upper(loose), pc.utf8_lower(names), pc.utf8_upper(names)]
    if pc.any(pc.utf8_is_digit(names)).as_py():
        words += [pc.utf8_lpad(loose, width, "0") for width in range(2, _MAX_WIDTH + 1)]
    return words


def _may_have_variants(names: pa.ChunkedArray) -> bool:
    """Whether both cases occur, letters beyond ASCII, or zeros that may lead; at a glance, so that it may err on the side of yes.

    Zeros that lead tell nobody apart where all names have one length and one number at most, as most registers write them.
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
