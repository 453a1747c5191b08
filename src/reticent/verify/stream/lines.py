"""The canonical form of a stream's lines and of its group and person names, which must disclose nothing.

Guarantee: a line that fits is canonical JSON without spaces, with keys in the documented order and columns in the policy's
    order. Names are sixteen hexadecimal digits whose leading digits look random. So an attacker finds no hidden message in them.
Not covered: whether a number is written as a number or as text, which a stream takes from its input; names that only look
    random; lines of a stream without a codebook, which other software may have written.
Cost: serializes each line once more; a count per name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.verify.published import Published

_KEYS = (
    ("type", "group", "candidates"),
    ("type", "group", "seq", "quasi", "plain"),
    ("type", "seq", "quasi", "sensitive", "plain"),
    ("type", "seq", "quasi", "sensitive"),
    ("type", "seq", "quasi", "plain", "stratum", "event", "candidates"),
    ("type", "seq", "quasi", "plain", "person", "stratum", "event", "candidates"),
)
_CODEBOOK_KEYS = ("type", "kind", "method", "columns", "guarantee", "policy", "veil", "notes")
_DIGITS, _DIGITS_CHECKED, _FEW = 16, 4, 64


class LineFormat:
    """The canonical form of lines under a policy."""

    def __init__(self, policy: Policy) -> None:
        self._order = {"quasi": list(policy.quasi), "plain": list(policy.plain)}
        self._quasi, self._plain = set(policy.quasi), set(policy.plain)

    def has_columns(self, quasi: Mapping[str, Any], plain: Mapping[str, Any], *, strict: bool) -> bool:
        """Return whether all columns are the policy's; if strict, whether no column is missing either."""
        if strict:
            return quasi.keys() == self._quasi and plain.keys() == self._plain
        return quasi.keys() <= self._quasi and plain.keys() <= self._plain

    def fits(self, line: bytes, read: Any) -> bool:
        """Return whether a line is the canonical form of its content."""
        if not isinstance(read, dict) or orjson.dumps(read) != line.removesuffix(b"\n"):
            return False
        if read.get("type") == "codebook":
            return has_codebook_order(read)
        if "sensitive" in read and (isinstance(read["sensitive"], dict) or ("plain" in read) != bool(self._plain)):
            return False  # CASTLE writes a single value, and plain columns only if the policy has any
        inner = ((order, read[part]) for part, order in self._order.items() if part in read)
        return tuple(read) in _KEYS and all(
            not isinstance(o, dict) or _is_in_order(list(o), order) for order, o in inner
        )


def is_single_value(cell: Any) -> bool:
    """Return whether a cell is one value; a list or an object could carry a message."""
    return not isinstance(cell, dict | list)


def are_single_values(cells: Any) -> bool:
    """Return whether cells are an object of single values."""
    return type(cells) is dict and all(map(is_single_value, cells.values()))


def has_codebook_order(book: dict[str, Any]) -> bool:
    """Return whether the entries of a stream's codebook are in their documented order."""
    guarantee = book.get("guarantee")
    inside = list(guarantee) if isinstance(guarantee, dict) else []
    return _is_in_order(list(book), list(_CODEBOOK_KEYS)) and _is_in_order(
        inside, ["claims", "words", "against", "not_covered"]
    )


def _is_in_order(names: list[str], order: list[str]) -> bool:
    """Return whether names follow an order; unknown names are a finding of their own."""
    places = [order.index(name) for name in names if name in order]
    return places == sorted(places)


def iter_table_lines(
    release: Published, plain: Sequence[str] = (), sensitive: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a stream's tables as lines: group (group, value, count), tuple (group, seq, ...), record (seq, ...)."""
    groups: dict[str, list[Any]] = {}
    for row in _iter_rows(release, "group"):
        groups.setdefault(str(row.get("group")), []).append([row.get("value"), _to_int(row.get("count"))])
    yield from ({"type": "group", "group": name, "candidates": pairs} for name, pairs in groups.items())
    for kind in ("tuple", "record"):
        for row in _iter_rows(release, kind):
            own = {"type": kind, "seq": _to_int(row.pop("seq", None))}
            own |= {"group": str(row.pop("group", None))} if kind == "tuple" else {}
            own["plain"] = {name: row.pop(name) for name in plain if name in row}
            own |= {"sensitive": {n: row.pop(n) for n in sensitive if n in row}} if kind == "record" else {}
            yield own | {"quasi": row}


def _iter_rows(release: Published, table: str) -> Iterator[dict[str, Any]]:
    for batch in release.tables[table].to_batches(max_chunksize=1 << 16) if table in release.tables else ():
        yield from batch.to_pylist()


def _to_int(value: Any) -> Any:
    try:
        return int(value)
    except (TypeError, ValueError):
        return value


class RandomNameCheck:
    """Check that names look random: sixteen hexadecimal digits, with many different ones at each position."""

    def __init__(self, letter: str) -> None:
        self._form = re.compile(f"{letter}[0-9a-f]{{{_DIGITS}}}")
        self._first, self._seen = len(letter), [Counter[str]() for _ in range(_DIGITS_CHECKED)]
        self._size = 0

    def accepts(self, name: str) -> bool:
        """Return whether a name is well-formed and, with all names before it, looks random."""
        if self._form.fullmatch(name) is None:
            return False
        self._size += 1
        for place, seen in enumerate(self._seen, self._first):
            seen[name[place]] += 1
        # Sixty-four random digits have fewer than six different ones once in 10^23 times.
        return self._size != _FEW or all(len(seen) > 5 for seen in self._seen)
