"""Guesses what one column contains, and who knows it, from its name and the form of its values.

Each rule returns a `ColumnHint` or None; the first hint is used. No reason quotes a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from reticent.policy import icd9
from reticent.policy.column_patterns import (
    CLINICAL_NAMES,
    IDENTIFYING_NAMES,
    KNOWN_NAMES,
    SENSITIVE_NAMES,
    VISIT_NAMES,
    looks_like,
    plain_word,
)
from reticent.policy.guess_hierarchy import band_tree, date_levels, local_date_levels, number_levels
from reticent.policy.labels import icd10_block, icd10_chapter

KnownTo = Literal["nobody", "person", "known", "visit", "illness", "clinic", "unknown"]
"""nobody: the same value in all records; person: identifies a person; known: to neighbors; visit: to visitors and staff;
illness: to be protected; clinic: only inside the clinic."""
_CODE_NAMES = re.compile(r"(^|_)(id|code|cd|type|class|cat|category|group|status|source|kind|flag)($|_)")
_NUMBER_NAMES = re.compile(r"(^|_)(id|nr|no|nbr|num|number|key|code|cd|uid)$|nummer$")
_UNIT_NAMES = re.compile(r"(^|_)(units?|einheit(en)?|unites?|unidad(es)?|eenheid)($|_)|uom$")
_NAMING_MEANINGS = ("where somebody lay", "who treated somebody", "who pays")
"""Numbers with these meanings are names, so intervals of them mean nothing."""
_AMOUNT_NAMES = re.compile(
    r"(^|_)(days?|hours?|minutes?|nights?|tage|stunden|jours|duration|dauer|time|age|years?|count|size|volume|n|share|rate|distance|km|number_of)($|_)|amount|paid|amt"
)
_NUMBERS_OF_PERSONS = ("a number given to a person or a record", "an identifier", "a medical record number", "a person")
_OTHER_CODES = ("a group of illnesses", "a treatment")
"""Codes with these meanings (DRG, OPS, OPCS) may look like ICD codes but have another hierarchy."""
UNITS_REASON = "the values look like units of measurement: neighbors do not know them"
_YES_OR_NO, _MANY_CODES = 2, 30
_FEW_NUMBERS = 10
"""Number of distinct numbers up to which they may be codes."""


@dataclass(frozen=True)
class ColumnHint:
    """The answer of a rule about a column."""

    known_to: KnownTo
    why: str
    hierarchy: dict[str, Any] | None = None


@dataclass(frozen=True, repr=False)
class ColumnFacts:
    """The input of the rules: the distinct values with their counts, and the number of missing cells."""

    name: str
    counts: Mapping[str, int] = field(repr=False)
    missing: int = 0

    @classmethod
    def of(cls, name: str, data: pa.ChunkedArray) -> ColumnFacts:
        """Count the values of a column of the data."""
        counts: Counter[str] = Counter()
        for entry in data.value_counts().to_pylist():
            if entry["values"] is not None:
                counts[str(entry["values"])] += entry["counts"]
        return cls(name, counts, len(data) - counts.total())

    @property
    def cells(self) -> int:
        """Number of cells that are not missing."""
        return sum(self.counts.values())

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(self.counts)

    @property
    def plain_name(self) -> str:
        """The name in the form that the rules match."""
        return plain_word(self.name)

    def share(self, pattern: str) -> float:
        """Return the share of the distinct values that match a pattern."""
        return sum(looks_like(pattern, value) for value in self.counts) / max(1, self.distinct)

    @cached_property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.distinct > 0 and all(looks_like("number", value) for value in self.counts)

    @cached_property
    def whole_numbers(self) -> bool:
        """Whether the values are whole numbers, or codes made of digits."""
        return self.distinct > 0 and all(looks_like("whole", value) for value in self.counts)

    @property
    def fine_grained(self) -> bool:
        """Whether there are many distinct numbers, which only the person who recorded them knows exactly."""
        return self.numeric and self.distinct > _FEW_NUMBERS

    @property
    def measured(self) -> bool:
        """Whether there are many numbers with decimals, as from measurements."""
        return self.numeric and any("." in value for value in self.counts) and self.distinct > _FEW_NUMBERS

    @property
    def unique(self) -> bool:
        """Whether nearly every record has a value of its own, and the values are not measurements."""
        return self.cells >= 30 and self.distinct > 0.9 * self.cells and not (self.numeric and not self.whole_numbers)


def hint_of(c: ColumnFacts) -> ColumnHint:
    """Return what a column seems to contain, and who knows it."""
    return next(sign for rule in _RULES if (sign := rule(c)) is not None)


def _constant(c: ColumnFacts) -> ColumnHint | None:
    if c.distinct > 1 or (c.distinct == 1 and (c.missing or c.cells == 1)):
        return None
    if not c.distinct:
        return ColumnHint("person", "empty: not released, because the content of later records is unknown")
    if what := _meaning_of_name(c, IDENTIFYING_NAMES):
        return ColumnHint("person", f"the name says {what}, though all records have the same value")
    return ColumnHint("nobody", "the same value in every record: distinguishes nobody")


def _direct_identifier(c: ColumnFacts) -> ColumnHint | None:
    what = _meaning_of_name(c, IDENTIFYING_NAMES)
    if what == "a person" and c.distinct <= _YES_OR_NO and c.cells >= _MANY_CODES:
        return None  # a flag, such as whether a person is insured
    if what:
        repeated = f"; {c.cells - c.distinct:,} records repeat a value" if 1 < c.distinct < c.cells else ""
        return ColumnHint("person", f"the name says {what}{repeated if what in _NUMBERS_OF_PERSONS else ''}")
    for sign, word in (
        ("email", "e-mail addresses"),
        ("url", "web addresses"),
        ("ip", "network addresses"),
        ("ssn", "social security numbers"),
        ("phone", "telephone numbers"),
    ):
        if c.distinct and c.share(sign) > 0.8 and not c.share("local date") > 0.8:
            return ColumnHint("person", f"the values look like {word}")
    return None


def _date(c: ColumnFacts) -> ColumnHint | None:
    compact = c.share("compact date") == 1 and not (c.unique and _NUMBER_NAMES.search(c.plain_name))
    if c.distinct > 1 and (compact or c.share("date") == 1):
        written = " (YYYYMMDD)" if compact else ""
        return ColumnHint("known", f"dates{written} of a person's life are known to others", date_levels(c.counts))
    if c.distinct > 1 and c.share("local date") > 0.95:
        local = local_date_levels(c.counts) if c.share("local date") == 1 else None
        if local is not None:
            return ColumnHint("known", f"dates ({local['format']}) of a person's life are known to others", local)
        return ColumnHint(
            "person", "dates in which day and month cannot be told apart: add dates and written, or write 1980-12-31"
        )
    if c.distinct > 1 and c.share("short date") > 0.95:
        return ColumnHint("person", "dates with two-digit years: not released unless written as 1980-12-31")
    if c.distinct > 1 and c.share("some date") > 0.95:
        return ColumnHint("person", "dates in several formats: not released unless all are written as 1980-12-31")
    return None


def _band(c: ColumnFacts) -> ColumnHint | None:
    tree = band_tree(c.counts)
    if tree is None:
        return None
    if what := _meaning_of_name(c, SENSITIVE_NAMES):
        return ColumnHint("illness", f"the name says {what}, in bands", {"tree": tree})
    if what := _meaning_of_name(c, CLINICAL_NAMES):
        return ColumnHint("clinic", f"the name says {what}, in bands: neighbors do not know it", {"tree": tree})
    return ColumnHint("known", f"{c.distinct} bands of numbers; each level joins adjacent bands", {"tree": tree})


def _code(c: ColumnFacts) -> ColumnHint | None:
    """Recognize codes of illnesses, drugs and tests; if a few values do not fit, the column gets no hierarchy.

    R000123 may be a code or a patient number: if nearly every value is unique and the name suggests no code, it is a number.
    """
    ill = _meaning_of_name(c, SENSITIVE_NAMES)
    others = c.unique or _meaning_of_name(c, KNOWN_NAMES) or _meaning_of_name(c, VISIT_NAMES)
    if c.distinct < 3 or (not ill and others):
        return None
    named = re.search(r"diag|(^|_)(dx|icd|cause)", c.plain_name) is not None
    for look, what, hierarchy, plausible in (
        ("atc", "ATC codes: a drug discloses the illness", {"prefix": [5, 4, 3, 1]}, True),
        ("icd10", "ICD-10 codes", {"icd10": True}, ill not in _OTHER_CODES),
        ("icd9", "ICD-9 codes", {"icd9": True}, named or any(looks_like("icd9 letter", v) for v in c.counts)),
        (
            "loinc",
            "LOINC codes: a test suggests the illness",
            None,
            c.distinct > _FEW_NUMBERS or "loinc" in c.plain_name,
        ),
    ):
        if plausible and c.share(look) > 0.9:
            return ColumnHint("illness", f"the values look like {what}", hierarchy if _all_fit(c, look) else None)
    return None


def _all_fit(c: ColumnFacts, look: str) -> bool:
    """Whether every value fits the hierarchy of its codes: one that does not would make the engine refuse the table."""
    lookups = {
        "icd10": lambda v: icd10_block(v[:3]) and icd10_chapter(v[:3]),
        "icd9": lambda v: icd9.range_of(icd9.category(v) or "", icd9.CHAPTERS),
    }
    return c.share(look) == 1 and (look not in lookups or all(map(lookups[look], c.counts)))


COUNT_NAMES = dict(list(CLINICAL_NAMES.items())[:1])


def _count(c: ColumnFacts) -> ColumnHint | None:
    what = "" if c.unique else _meaning_of_name(c, COUNT_NAMES)
    return (
        ColumnHint("clinic", f"the name says {what}: neighbors do not know it", interval_hierarchy(c)) if what else None
    )


def _postcode(c: ColumnFacts) -> ColumnHint | None:
    lengths = {len(v) for v in c.counts}
    if re.search(r"(zip|post_?code|postal|plz)", c.plain_name) and lengths and max(lengths) <= 10:
        return ColumnHint("known", "the name says a postal code", {"prefix": max(lengths)})
    return None


def _illness(c: ColumnFacts) -> ColumnHint | None:
    what = _meaning_of_name(c, SENSITIVE_NAMES)
    coded = not c.measured or _CODE_NAMES.search(c.plain_name)
    return ColumnHint("illness", f"the name says {what}") if what and coded else None


def _measurement_unit(c: ColumnFacts) -> ColumnHint | None:
    """Recognize units of measurement; the values must match, because a ward is called a unit, too."""
    if _UNIT_NAMES.search(c.plain_name) and c.share("unit") > 0.5:
        return ColumnHint("clinic", UNITS_REASON)
    return None


def _unique(c: ColumnFacts) -> ColumnHint | None:
    if c.unique:
        return ColumnHint("person", f"nearly every record has a value of its own ({c.distinct:,} of {c.cells:,})")
    long = c.whole_numbers and min(map(len, c.counts)) >= 4
    if c.cells >= 30 and c.distinct > 0.3 * c.cells and long and _NUMBER_NAMES.search(c.plain_name):
        return ColumnHint("person", f"a number that names something: {c.distinct:,} in {c.cells:,} records")
    return None


def _text(c: ColumnFacts) -> ColumnHint | None:
    letters = sum(len(value) * count for value, count in c.counts.items())
    if c.cells and letters / c.cells > 40 and c.distinct > 0.3 * c.cells:
        return ColumnHint("person", "free text may contain anything about a person")
    return None


def _by_name(c: ColumnFacts) -> ColumnHint | None:
    words: tuple[tuple[KnownTo, dict[str, str], str], ...] = (
        ("known", KNOWN_NAMES, "neighbors and registers know it"),
        ("visit", VISIT_NAMES, "visitors and staff know it"),
        ("clinic", CLINICAL_NAMES, "neighbors do not know it"),
    )
    for who, names, because in words:
        if what := _meaning_of_name(c, names):
            names_of = what in _NAMING_MEANINGS and not _AMOUNT_NAMES.search(c.plain_name)
            return ColumnHint(
                who,
                f"the name says {what}: {because}{_explain_no_intervals(c)}",
                None if names_of else interval_hierarchy(c),
            )
    return None


def _fallback(c: ColumnFacts) -> ColumnHint | None:
    what = "measured numbers" if c.measured else "different numbers" if c.numeric else "different values"
    return ColumnHint("unknown", f"{c.distinct} {what}", interval_hierarchy(c))


def _explain_no_intervals(c: ColumnFacts) -> str:
    """Return why a column of numbers gets no intervals; empty if that is not the case."""
    words = round((1 - c.share("number")) * c.distinct)
    if c.distinct <= _FEW_NUMBERS or not 0 < words < c.distinct / 2:
        return ""
    return f"; no intervals: {words} of {c.distinct} values are not numbers; correct them, or list them under missing"


def interval_hierarchy(c: ColumnFacts) -> dict[str, Any] | None:
    """Return intervals for numbers; None for numeric codes, because their order means nothing."""
    few = c.distinct <= _MANY_CODES and (
        _CODE_NAMES.search(c.plain_name) or any(v[0] == "0" and v != "0" for v in c.counts)
    )
    coded = _NUMBER_NAMES.search(c.plain_name) or few  # 0100 is the name of a ward
    if not c.numeric or c.distinct < 3 or (c.whole_numbers and coded):
        return None
    return number_levels(c.counts)


def _meaning_of_name(c: ColumnFacts, names: dict[str, str]) -> str:
    return next((what for pattern, what in names.items() if re.search(pattern, c.plain_name)), "")


_RULES = (
    *(_constant, _direct_identifier, _date, _band, _count, _postcode, _code, _measurement_unit, _illness),
    *(_unique, _text, _by_name, _fallback),
)
