"""How the lines of a stream are written, and how groups and persons are named in it: so that neither tells anything.

Guarantee: a line that fits is written without spaces, in the one way that its objects have, its keys in the documented order and the columns
    in that of the policy; names are sixteen digits whose first ones are spread as those of names drawn by chance.
Not covered: a number beside the text of the same digits, since a stream passes on how its input was written; names that were computed
    from something and only look as if drawn; lines of a stream without a codebook, which somebody
    else may have written.
Cost: one more writing of each line; a count per name.
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
    """Knows how lines under a policy are written."""

    def __init__(self, policy: Policy) -> None:
        self._order = {"quasi": list(policy.quasi), "plain": list(policy.plain)}
        self._quasi, self._plain = set(policy.quasi), set(policy.plain)

    def has_columns(self, quasi: Mapping[str, Any], plain: Mapping[str, Any], *, strict: bool) -> bool:
        """Whether no column but the policy's is there; and all of them, where a codebook makes it strict."""
        if strict:
            return quasi.keys() == self._quasi and plain.keys() == self._plain
        return quasi.keys() <= self._quasi and plain.keys() <= self._plain

    def fits(self, line: bytes, read: Any) -> bool:
        """Whether a line is written as what it says is."""
        if not isinstance(read, dict) or orjson.dumps(read) != line.removesuffix(b"\n"):
            return False
        if read.get("type") == "codebook":
            return has_codebook_order(read)
        if "sensitive" in read and (isinstance(read["sensitive"], dict) or ("plain" in read) != bool(self._plain)):
            return False  # CASTLE writes the value itself, and plain columns where the policy has some
        inner = ((order, read[part]) for part, order in self._order.items() if part in read)
        return tuple(read) in _KEYS and all(
            not isinstance(o, dict) or _is_in_order(list(o), order) for order, o in inner
        )


def is_single_value(cell: Any) -> bool:
    """Whether a cell is one value: a list or an object could hold whatever one likes."""
    return not isinstance(cell, dict | list)


def are_single_values(cells: Any) -> bool:
    """Whether cells stand by name, each of one value."""
    return type(cells) is dict and all(map(is_single_value, cells.values()))


def has_codebook_order(book: dict[str, Any]) -> bool:
    """Whether the entries of a stream's codebook stand in their order."""
    guarantee = book.get("guarantee")
    inside = list(guarantee) if isinstance(guarantee, dict) else []
    return _is_in_order(list(book), list(_CODEBOOK_KEYS)) and _is_in_order(
        inside, ["claims", "words", "against", "not_covered"]
    )


def _is_in_order(names: list[str], order: list[str]) -> bool:
    """Whether names stand in an order; those that are not in it are a finding of their own."""
    places = [order.index(name) for name in names if name in order]
    return places == sorted(places)


def iter_table_lines(
    release: Published, plain: Sequence[str] = (), sensitive: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """The tables of a stream as its lines: group (group, value, count), tuple (group, seq, ...), record (seq, ...)."""
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
    """Looks at names that should be drawn by chance: sixteen digits, of which every place shows many."""

    def __init__(self, letter: str) -> None:
        self._form = re.compile(f"{letter}[0-9a-f]{{{_DIGITS}}}")
        self._first, self._seen = len(letter), [Counter[str]() for _ in range(_DIGITS_CHECKED)]
        self._size = 0

    def accepts(self, name: str) -> bool:
        """Whether a name fits, beside all before it."""
        if self._form.fullmatch(name) is None:
            return False
        self._size += 1
        for place, seen in enumerate(self._seen, self._first):
            seen[name[place]] += 1
        # Sixty-four digits drawn by chance show fewer than six different ones once in 10^23 times.
        return self._size != _FEW or all(len(seen) > 5 for seen in self._seen)
