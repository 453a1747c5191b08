"""Guesses a policy from data: a role and a hierarchy for each column, and why.

When unsure a column becomes a quasi-identifier: the cautious side. Guesses are a start for a person to correct.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy.column_patterns import IDENTIFYING_NAMES, SENSITIVE_NAMES, looks_like

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE = 50_000


@dataclass(frozen=True)
class Guess:
    """What a column seems to be; `why` never quotes a value."""

    column: str
    role: str
    why: str
    hierarchy: dict[str, Any] | None = None
    distinct: int = field(default=0, compare=False)
    repeats: bool = field(default=False, compare=False)


@dataclass(frozen=True, repr=False)
class _Column:
    """What the rules look at."""

    name: str
    values: list[str]
    distinct: list[str]
    missing: int

    @property
    def word(self) -> str:
        return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()).strip("_")

    def share(self, sign: str) -> float:
        """Share of the distinct values that look like something."""
        return sum(looks_like(sign, value) for value in self.distinct) / max(1, len(self.distinct))


def guess(table: pa.Table) -> list[Guess]:
    """One guess per column, in the table's order."""
    sample = table.slice(0, SAMPLE)
    guesses = [_guess_column(_column(name, sample.column(name))) for name in table.column_names]
    return _one_sensitive(guesses)


def settings_of(guesses: Sequence[Guess]) -> dict[str, Any]:
    """The guesses as the plain values of a policy."""
    columns = {g.column: g.role if g.hierarchy is None else {"role": g.role, "hierarchy": g.hierarchy} for g in guesses}
    wide = any(g.role == "sensitive" and g.distinct >= 3 for g in guesses)
    person = guess_person(guesses)
    privacy = {"k": 5} | ({"l": 3} if wide else {}) | {"suppression": 0.02}
    return {"version": 1, "columns": columns, "privacy": privacy} | ({"person": person} if person else {})


def guess_person(guesses: Sequence[Guess]) -> str | None:
    """The identifier that most likely names the person: by its name, before all one that repeats."""
    names = [g.column for g in guesses if g.role == "identifier"]
    again = {g.column for g in guesses if g.repeats}
    likely = _likely(names)
    return next(iter([n for n in likely if n in again] + likely), None)


def repeated_identifier(table: pa.Table, names: Sequence[str]) -> tuple[str, int] | None:
    """An identifier that seems to name persons and repeats, and how many records are further ones of somebody."""
    for name in _likely(list(names)):
        cells = table.column(name).drop_null()
        further = len(cells) - pc.count_distinct(cells).as_py()
        if further:
            return name, further
    return None


def _likely(names: list[str]) -> list[str]:
    """Names of identifiers that may tell one person from another, the surest first."""
    strong = [
        n
        for n in names
        if re.search(r"(patient|person|subject|member|mrn|nhs|insur)", n, re.IGNORECASE)
        and not re.search("name", n, re.IGNORECASE)
    ]
    weak = [n for n in names if re.search(r"(^|_)(id|key|number|nr|no)$|nummer$", n, re.IGNORECASE)]
    return list(dict.fromkeys(strong + weak))


def _column(name: str, data: pa.ChunkedArray) -> _Column:
    values = [str(v) for v in data.to_pylist() if v is not None]
    return _Column(name, values, list(dict.fromkeys(values)), len(data) - len(values))


def _guess_column(c: _Column) -> Guess:
    rules = (_direct, _date, _local_date, _icd, _postcode, _sensitive, _near_unique, _number, _text)
    for rule in rules:
        parts = rule(c)
        if parts is not None:
            return Guess(c.name, *parts, len(c.distinct), len(c.distinct) < len(c.values))
    return Guess(c.name, "quasi", f"{len(c.distinct)} different values that others may know", None, len(c.distinct))


Found = tuple[str, str, dict[str, Any] | None] | None


def _direct(c: _Column) -> Found:
    for sign, word in (
        ("email", "e-mail addresses"),
        ("url", "web addresses"),
        ("ip", "network addresses"),
        ("ssn", "social security numbers"),
        ("phone", "telephone numbers"),
    ):
        if c.distinct and c.share(sign) > 0.8:
            return "identifier", f"the values look like {word}", None
    for pattern, what in IDENTIFYING_NAMES.items():
        if re.search(pattern, c.word):
            return "identifier", f"the name says {what}", None
    return None


def _date(c: _Column) -> Found:
    if len(c.distinct) > 1 and c.share("date") > 0.95:
        return "quasi", "dates of a person's life are known to others", {"dates": ["day", "month", "quarter", "year"]}
    return None


def _local_date(c: _Column) -> Found:
    if len(c.distinct) > 1 and c.share("local date") > 0.95:
        return "identifier", "dates written this way cannot be generalised: write 1980-12-31 to release them", None
    return None


def _icd(c: _Column) -> Found:
    if len(c.distinct) >= 3 and c.share("icd10") > 0.9 and not re.search("ward|room|bed", c.word):
        return "sensitive", "the values look like ICD-10 codes", {"icd10": True}
    return None


def _postcode(c: _Column) -> Found:
    named = re.search(r"(zip|post_?code|postal|plz)", c.word)
    lengths = {len(v) for v in c.distinct}
    if named and lengths and max(lengths) <= 10:
        return "quasi", "the name says a postal code", {"prefix": max(lengths)}
    return None


def _sensitive(c: _Column) -> Found:
    for pattern, what in SENSITIVE_NAMES.items():
        if re.search(pattern, c.word) and len(c.distinct) > 1:
            return "sensitive", f"the name says {what}", None
    return None


def _near_unique(c: _Column) -> Found:
    whole = all(looks_like("whole", v) for v in c.distinct[:1000])
    if len(c.values) >= 30 and len(c.distinct) > 0.9 * len(c.values) and (whole or not _is_number(c)):
        return (
            "identifier",
            f"nearly every record has a value of its own ({len(c.distinct):,} of {len(c.values):,})",
            None,
        )
    return None


def _is_number(c: _Column) -> bool:
    return bool(c.distinct) and c.share("number") > 0.99


def _number(c: _Column) -> Found:
    if not _is_number(c) or len(c.distinct) <= 10:
        return None
    numbers = [float(v) for v in c.distinct if looks_like("number", v)]
    width = nice((max(numbers) - min(numbers)) / 16)
    steps = [width, width * 2, width * 4, width * 8]
    return (
        "quasi",
        f"{len(c.distinct)} different numbers",
        {"intervals": [int(s) if float(s).is_integer() else s for s in steps]},
    )


def _text(c: _Column) -> Found:
    if c.values and sum(map(len, c.values)) / len(c.values) > 40 and len(c.distinct) > 0.3 * len(c.values):
        return "identifier", "free text may say anything about a person", None
    return None


def nice(x: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten, at least as large as needed."""
    if x <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(x))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= x * 0.999)


def _one_sensitive(guesses: list[Guess]) -> list[Guess]:
    """Engines protect one sensitive column; the others that look like it become quasi-identifiers."""
    candidates = [g for g in guesses if g.role == "sensitive"]
    if len(candidates) <= 1:
        return guesses
    main = max(candidates, key=lambda g: (bool(g.hierarchy), g.distinct))
    return [
        Guess(g.column, "quasi", f"{g.why}; '{main.column}' is protected as the sensitive one", g.hierarchy, g.distinct)
        if g in candidates and g is not main
        else g
        for g in guesses
    ]
