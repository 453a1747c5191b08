"""Guesses a policy from data: a role and a hierarchy for each column, with the reason.

The role depends on who can know a column. Columns that neighbors, registers and visitors know become quasi-identifiers.
Columns that nobody outside the clinic can know are released unchanged and listed as not covered. Illnesses and their
treatments are sensitive, or withheld if they cannot be protected. A column of unknown meaning becomes a quasi-identifier
while there are few of these. The user should review every guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy.cells import canonical_form, encode_cells, without_markers
from reticent.policy.column_patterns import person_columns
from reticent.policy.disclosure import discloses, discloses_partly, entropy_bits
from reticent.policy.guess_column import UNITS_REASON, ColumnFacts, ColumnHint, hint_of

SAMPLE = 200_000
K, L, SUPPRESSION = 5, 3, 0.02
"""Requirements of a first policy, as far as the data allows."""
FEW_QUASI, MAX_QUASI = 8, 16
"""Number of quasi-identifiers up to which columns of unknown meaning, and columns of a visit, become quasi-identifiers."""
_YES_OR_NO = 2
_MAX_SENSITIVE = 3
"""Sensitive columns that are protected together; each additional one costs utility in all of them."""
_BATTERY_SIZE = 4
_PAIR_SAMPLE = 20_000
"""Records used to test whether a column discloses another one."""


@dataclass(frozen=True)
class Guess:
    """The guessed role of a column; `why` never quotes a value.

    Attributes:
        normalize: some values are written in several ways.
        unsure: the user should review the guess; `init` asks on a terminal.
    """

    column: str
    role: str
    why: str
    hierarchy: dict[str, Any] | None = None
    distinct: int = field(default=0, compare=False)
    repeats: bool = field(default=False, compare=False)
    normalize: bool = field(default=False, compare=False)
    unsure: bool = field(default=False, compare=False)

    @property
    def used_hierarchy(self) -> dict[str, Any] | None:
        """The hierarchy, for roles that use one."""
        return self.hierarchy if self.role in ("quasi", "sensitive") else None

    @property
    def settings(self) -> dict[str, Any]:
        """The policy settings of the column other than its role."""
        hierarchy = {} if self.used_hierarchy is None else {"hierarchy": self.used_hierarchy}
        return hierarchy | ({"normalize": True} if self.normalize and self.role == "sensitive" else {})


def guess(table: pa.Table) -> list[Guess]:
    """Return one guess per column, in the table's order."""
    sample = without_markers(table.slice(0, SAMPLE), guess_missing_markers(table))
    facts = {name: ColumnFacts.of(name, sample.column(name)) for name in table.column_names}
    signs = _mark_results(facts, _mark_batteries(facts, {name: hint_of(c) for name, c in facts.items()}))
    roles = _sensitive_roles(facts, signs) | _quasi_roles(facts, signs)
    guesses = [_guess(facts[name], signs[name], roles) for name in facts]
    return _promote_dependent(sample.slice(0, _PAIR_SAMPLE), without_disclosive(sample, guesses))


def guess_missing_markers(table: pa.Table) -> tuple[str, ...]:
    """Return the words that mark a missing cell."""
    sample = table.slice(0, SAMPLE)
    return missing_markers({name: ColumnFacts.of(name, sample.column(name)).counts for name in sample.column_names})


def guess_l(table: pa.Table, guesses: Sequence[Guess]) -> int | None:
    """Return the largest l up to 3 that every sensitive column allows in classes of 2k records; None for no such l."""
    names = [g.column for g in guesses if g.role == "sensitive"]
    sample = without_markers(table.slice(0, SAMPLE), guess_missing_markers(table))
    most = min((allowed_l(ColumnFacts.of(name, sample.column(name))) for name in names), default=1)
    return most if most > 1 else None


def settings_of(table: pa.Table, guesses: Sequence[Guess]) -> dict[str, Any]:
    """Return the guesses as the plain values of a policy."""
    columns = {g.column: {"role": g.role} | g.settings if g.settings else g.role for g in guesses}
    l, person, missing = guess_l(table, guesses), guess_person(guesses), guess_missing_markers(table)
    privacy = {"k": K} | ({"l": l} if l else {}) | {"suppression": SUPPRESSION}
    settings = {"version": 1, "columns": columns, "privacy": privacy}
    return settings | ({"person": person} if person else {}) | ({"missing": list(missing)} if missing else {})


def allowed_l(c: ColumnFacts) -> int:
    """Return the largest l up to 3 for which classes of 2k records can contain l distinct values; 1 for none.

    Every class needs l - i records outside the i most frequent values. The number of these records bounds the classes.
    """
    counts = sorted([*c.counts.values(), *([c.missing] if c.missing else [])], reverse=True)
    rows = sum(counts)
    for l in range(min(L, len(counts)), 1, -1):
        classes = min((rows - sum(counts[:i])) / (l - i) for i in range(l))
        if classes * 2 * K >= rows:
            return l
    return 1


def keep_one_sensitive(guesses: Sequence[Guess]) -> list[Guess]:
    """Keep one sensitive column, preferably with diagnosis codes; withhold the others for methods that protect only one."""
    ills = [g for g in guesses if g.role == "sensitive"]
    main = next((g.column for g in ills if g.hierarchy), ills[0].column if ills else None)
    return [
        replace(g, role="identifier", why=f"{g.why}; not released: this method protects one column, '{main}'")
        if g.role == "sensitive" and g.column != main
        else g
        for g in guesses
    ]


def guess_person(guesses: Sequence[Guess]) -> str | None:
    """Return the identifier that most likely names the person, by its name; prefer one that repeats."""
    names = [g.column for g in guesses if g.role == "identifier" and g.distinct != _YES_OR_NO]
    repeating = {g.column for g in guesses if g.repeats}
    likely = person_columns(names)
    return next(iter([n for n in likely if n in repeating] + likely), None)


def _mark_batteries(facts: Mapping[str, ColumnFacts], signs: dict[str, ColumnHint]) -> dict[str, ColumnHint]:
    """Mark columns of unknown meaning that share the same few answers, as in a questionnaire or a list of drugs."""
    answers = {
        n: set(facts[n].counts) for n, sign in signs.items() if sign.known_to == "unknown" and facts[n].distinct <= 6
    }
    for name, own in answers.items():
        alike = sum(own <= others or others <= own for others in answers.values())
        if alike > _BATTERY_SIZE:
            why = f"one of {alike} columns with the same few answers: neighbors do not know them"
            signs[name] = replace(signs[name], known_to="clinic", why=why)
    return signs


def _mark_results(facts: Mapping[str, ColumnFacts], signs: dict[str, ColumnHint]) -> dict[str, ColumnHint]:
    """Mark measured numbers of unknown meaning as results if the table also has a column of units."""
    if all(sign.why != UNITS_REASON for sign in signs.values()):
        return signs
    why = "measured numbers with a column of units: neighbors do not know them"
    unclear = {name for name, sign in signs.items() if sign.known_to == "unknown" and facts[name].measured}
    return {n: replace(sign, known_to="clinic", why=why) if n in unclear else sign for n, sign in signs.items()}


Roles = dict[str, tuple[str, str]]
"""Column -> role, and the text that is added to the reason."""


def _sensitive_roles(facts: Mapping[str, ColumnFacts], signs: Mapping[str, ColumnHint]) -> Roles:
    """Choose the illness columns to protect; withhold the others, because they could disclose the protected ones."""
    illnesses = [name for name, sign in signs.items() if sign.known_to == "illness"]
    ranked = sorted(illnesses, key=lambda n: (not signs[n].hierarchy, -allowed_l(facts[n])))
    chosen = [n for n in ranked if allowed_l(facts[n]) > 1][:_MAX_SENSITIVE] or ranked[:1]
    rest = "; not released: it could disclose the protected columns"
    return {name: ("sensitive", "") if name in chosen else ("identifier", rest) for name in illnesses}


def _quasi_roles(facts: Mapping[str, ColumnFacts], signs: Mapping[str, ColumnHint]) -> Roles:
    """Make known columns quasi-identifiers; of columns of unknown meaning, the most identifying ones up to a limit."""
    of = {who: [n for n, sign in signs.items() if sign.known_to == who] for who in ("known", "visit", "unknown")}
    quasi = len(of["known"])
    roles: Roles = dict.fromkeys(of["known"], ("quasi", ""))
    for name in sorted(of["visit"], key=lambda n: facts[n].distinct):
        room = quasi < MAX_QUASI
        roles[name] = (
            ("quasi", "") if room else ("identifier", f"; not released: {quasi} columns are generalized already")
        )
        quasi += room
    for name in sorted(of["unknown"], key=lambda n: (facts[n].measured, facts[n].fine_grained, -entropy(facts[n]))):
        room = quasi < FEW_QUASI
        roles[name] = ("quasi", " that an attacker may know") if room else _role_beyond_limit(facts[name])
        quasi += room
    return roles


def _role_beyond_limit(c: ColumnFacts) -> tuple[str, str]:
    """Return the role of a column of unknown meaning beyond the limit: plain, unless its values single out records."""
    many = c.distinct > max(100, 0.02 * c.cells)  # possibly a date or an age in an unknown notation
    if many and not c.measured:
        return "identifier", " of unknown meaning that single out records: not released"
    return "plain", " of unknown meaning: released unchanged; if an attacker may know them, write quasi"


def entropy(c: ColumnFacts) -> float:
    """Return the entropy of a column in bits."""
    return entropy_bits(np.array(list(c.counts.values()), dtype=np.float64))


_ROLE_BY_KNOWLEDGE = {"nobody": "plain", "clinic": "plain", "person": "identifier"}


def _guess(c: ColumnFacts, sign: ColumnHint, roles: Roles) -> Guess:
    role, more = roles.get(c.name) or (
        _ROLE_BY_KNOWLEDGE[sign.known_to],
        "; released unchanged" if sign.known_to == "clinic" else "",
    )
    unsure = sign.known_to == "unknown" or (sign.known_to in ("illness", "visit") and role == "identifier")
    why = sign.why + more
    variants = (
        c.distinct + bool(c.missing) - len({canonical_form(v) for v in (*c.counts, *([""] if c.missing else []))})
    )
    if variants and role == "sensitive":
        why += f"; {variants:,} of them are variants of other values and are merged"
    return Guess(c.name, role, why, sign.hierarchy, c.distinct, c.distinct < c.cells, variants > 0, unsure)


def without_disclosive(table: pa.Table, guesses: list[Guess]) -> list[Guess]:
    """Withhold columns that disclose a protected one, such as the name of an illness next to its code."""
    sample = table.slice(0, _PAIR_SAMPLE)
    illnesses = {g.column: _codes(sample.column(g.column)) for g in guesses if g.role == "sensitive"}
    few = {g.column for g in guesses if g.role in ("quasi", "plain") and 1 < g.distinct <= len(sample) / 20}
    return [
        _withhold_disclosive(g, _codes(sample.column(g.column)), illnesses) if g.column in few else g for g in guesses
    ]


def _codes(column: pa.ChunkedArray) -> Int64s:
    return encode_cells(column)[0].astype(np.int64)


def _withhold_disclosive(guess: Guess, own_codes: Int64s, illnesses: Mapping[str, Int64s]) -> Guess:
    test = discloses_partly if guess.role == "plain" else discloses
    illness = next((name for name, codes in illnesses.items() if test(own_codes, codes)), None)
    if illness is None:
        return guess
    return replace(
        guess, role="identifier", why=f"discloses '{illness}', which is protected: not released", unsure=False
    )


def _promote_dependent(sample: pa.Table, guesses: list[Guess]) -> list[Guess]:
    """Make plain columns that disclose a quasi-identifier, or are disclosed by one, quasi-identifiers too."""
    codes = {g.column: _codes(sample.column(g.column)) for g in guesses if g.role in ("quasi", "plain")}
    known = {g.column: codes[g.column] for g in guesses if g.role == "quasi" and 1 < g.distinct <= len(sample) / 20}
    return [_promote_column(g, codes[g.column], known) if g.role == "plain" and g.distinct > 1 else g for g in guesses]


def _promote_column(guess: Guess, own_codes: Int64s, known: Mapping[str, Int64s]) -> Guess:
    related = next(
        (name for name, codes in known.items() if discloses(own_codes, codes) or discloses(codes, own_codes)), None
    )
    if related is None or guess.distinct > len(own_codes) / 20:
        return guess
    return replace(
        guess,
        role="quasi",
        why=f"determines '{related}', which an attacker may know, or is determined by '{related}'",
        unsure=False,
    )


_WORDS = ("?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "missing", "Missing", "-", "--", ".")
_NUMBERS = ("-9", "-99", "-999", "-9999", "-9.0", "-99.0", "-999.0")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LETTERS = re.compile(r"[A-Z]{2}")
_MANY_CODES = 10


def missing_markers(columns: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """Return the missing-value markers among the values of the columns, each given with its counts.

    A word is a marker only if it is no ordinary value in any column: NA among two-letter codes is Namibia, and -9 among
    other negative numbers is a number.

    >>> missing_markers({"race": {"Asian": 3, "?": 2}, "score": {"-9": 2, "11": 7}, "cold": {"-9": 1, "-12": 4}})
    ('?',)
    """
    present = (word for word in _WORDS + _NUMBERS if any(word in counts for counts in columns.values()))
    return tuple(word for word in present if all(_can_be_marker(word, counts) for counts in columns.values()))


def _can_be_marker(word: str, counts: Mapping[str, int]) -> bool:
    """Whether a word is absent from a column or differs in kind from all of its other values."""
    if word not in counts:
        return True
    others = [value for value in counts if value not in _WORDS + _NUMBERS]
    if not others:
        return len(counts) == 1 or word in _WORDS
    if word in _NUMBERS:
        return all(_NUMBER.fullmatch(value) and not value.startswith("-") for value in others)
    if word == "NA":
        return not (len(others) >= _MANY_CODES and all(_LETTERS.fullmatch(value) for value in others))
    return True
