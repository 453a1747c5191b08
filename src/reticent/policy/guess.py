"""Guesses a policy from data: a role and a hierarchy for each column, and why.

What counts is who can know a column. What neighbours, registers and visitors know becomes a quasi-identifier; what only the
clinic's file knows is released as it is and named as not covered; illnesses and their treatment are sensitive, and stay inside
where they cannot be hidden among others. A column of unknown meaning becomes a quasi-identifier as long as there are few of
them: the cautious side. Guesses are a start for a person to correct.
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
"""What a first policy asks for, as far as the data allow it."""
FEW_QUASI, MAX_QUASI = 8, 16
"""Quasi-identifiers up to which columns of unknown meaning, and those of a visit, become some."""
_YES_OR_NO = 2
_MAX_SENSITIVE = 3
"""Columns that are protected side by side; every one more costs all of them."""
_BATTERY_SIZE = 4
_PAIR_SAMPLE = 20_000
"""Records by which it is seen whether a column tells another one."""


@dataclass(frozen=True)
class Guess:
    """What a column seems to be; `why` never quotes a value.

    Attributes:
        normalise: values of it are written in several ways.
        unsure: a person should look at it; on a terminal `init` asks.
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
        """The hierarchy, where the role has a use for one."""
        return self.hierarchy if self.role in ("quasi", "sensitive") else None

    @property
    def settings(self) -> dict[str, Any]:
        """What the policy says of the column besides its role."""
        hierarchy = {} if self.used_hierarchy is None else {"hierarchy": self.used_hierarchy}
        return hierarchy | ({"normalize": True} if self.normalize and self.role == "sensitive" else {})


def guess(table: pa.Table) -> list[Guess]:
    """One guess per column, in the table's order."""
    sample = without_markers(table.slice(0, SAMPLE), guess_missing_markers(table))
    facts = {name: ColumnFacts.of(name, sample.column(name)) for name in table.column_names}
    signs = _mark_results(facts, _mark_batteries(facts, {name: hint_of(c) for name, c in facts.items()}))
    roles = _sensitive_roles(facts, signs) | _quasi_roles(facts, signs)
    guesses = [_guess(facts[name], signs[name], roles) for name in facts]
    return _promote_dependent(sample.slice(0, _PAIR_SAMPLE), without_disclosive(sample, guesses))


def guess_missing_markers(table: pa.Table) -> tuple[str, ...]:
    """The words that stand for a missing cell."""
    sample = table.slice(0, SAMPLE)
    return missing_markers({name: ColumnFacts.of(name, sample.column(name)).counts for name in sample.column_names})


def guess_l(table: pa.Table, guesses: Sequence[Guess]) -> int | None:
    """The largest l up to three that every sensitive column allows in classes of a good size; none where there is none."""
    names = [g.column for g in guesses if g.role == "sensitive"]
    sample = without_markers(table.slice(0, SAMPLE), guess_missing_markers(table))
    most = min((allowed_l(ColumnFacts.of(name, sample.column(name))) for name in names), default=1)
    return most if most > 1 else None


def settings_of(table: pa.Table, guesses: Sequence[Guess]) -> dict[str, Any]:
    """The guesses as the plain values of a policy."""
    columns = {g.column: {"role": g.role} | g.settings if g.settings else g.role for g in guesses}
    l, person, missing = guess_l(table, guesses), guess_person(guesses), guess_missing_markers(table)
    privacy = {"k": K} | ({"l": l} if l else {}) | {"suppression": SUPPRESSION}
    settings = {"version": 1, "columns": columns, "privacy": privacy}
    return settings | ({"person": person} if person else {}) | ({"missing": list(missing)} if missing else {})


def allowed_l(c: ColumnFacts) -> int:
    """The largest l up to three for which classes of two times k records could hold l different values; 1 for none.

    Every class needs l - i records besides those of the i most frequent values, so their number bounds that of the classes.
    """
    counts = sorted([*c.counts.values(), *([c.missing] if c.missing else [])], reverse=True)
    rows = sum(counts)
    for l in range(min(L, len(counts)), 1, -1):
        classes = min((rows - sum(counts[:i])) / (l - i) for i in range(l))
        if classes * 2 * K >= rows:
            return l
    return 1


def keep_one_sensitive(guesses: Sequence[Guess]) -> list[Guess]:
    """One sensitive column stays, the first with codes of illnesses; the others are kept inside, for methods that protect one."""
    ills = [g for g in guesses if g.role == "sensitive"]
    main = next((g.column for g in ills if g.hierarchy), ills[0].column if ills else None)
    return [
        replace(g, role="identifier", why=f"{g.why}; kept inside, since this method protects one column: '{main}'")
        if g.role == "sensitive" and g.column != main
        else g
        for g in guesses
    ]


def guess_person(guesses: Sequence[Guess]) -> str | None:
    """The identifier that most likely names the person: by its name, before all one that repeats."""
    names = [g.column for g in guesses if g.role == "identifier" and g.distinct != _YES_OR_NO]
    again = {g.column for g in guesses if g.repeats}
    likely = person_columns(names)
    return next(iter([n for n in likely if n in again] + likely), None)


def _mark_batteries(facts: Mapping[str, ColumnFacts], signs: dict[str, ColumnHint]) -> dict[str, ColumnHint]:
    """Columns of unknown meaning with the same few answers, as a questionnaire or a list of drugs has them."""
    answers = {
        n: set(facts[n].counts) for n, sign in signs.items() if sign.known_to == "unknown" and facts[n].distinct <= 6
    }
    for name, own in answers.items():
        alike = sum(own <= others or others <= own for others in answers.values())
        if alike > _BATTERY_SIZE:
            why = f"one of {alike} columns with the same few answers: a neighbour does not know them"
            signs[name] = replace(signs[name], known_to="clinic", why=why)
    return signs


def _mark_results(facts: Mapping[str, ColumnFacts], signs: dict[str, ColumnHint]) -> dict[str, ColumnHint]:
    """Measured numbers of unknown meaning beside a column of units are what was measured in them."""
    if all(sign.why != UNITS_REASON for sign in signs.values()):
        return signs
    why = "measured numbers beside their units: a neighbour does not know them"
    unclear = {name for name, sign in signs.items() if sign.known_to == "unknown" and facts[name].measured}
    return {n: replace(sign, known_to="clinic", why=why) if n in unclear else sign for n, sign in signs.items()}


Roles = dict[str, tuple[str, str]]
"""Column -> its role, and what is added to the reason."""


def _sensitive_roles(facts: Mapping[str, ColumnFacts], signs: Mapping[str, ColumnHint]) -> Roles:
    """The illnesses that are protected; the others stay inside, since beside them they would tell on those."""
    ills = [name for name, sign in signs.items() if sign.known_to == "illness"]
    ranked = sorted(ills, key=lambda n: (not signs[n].hierarchy, -allowed_l(facts[n])))
    chosen = [n for n in ranked if allowed_l(facts[n]) > 1][:_MAX_SENSITIVE] or ranked[:1]
    rest = "; it cannot be hidden among others beside the protected ones, so it is kept inside"
    return {name: ("sensitive", "") if name in chosen else ("identifier", rest) for name in ills}


def _quasi_roles(facts: Mapping[str, ColumnFacts], signs: Mapping[str, ColumnHint]) -> Roles:
    """Who else knows the column decides; of what nobody can say, the most telling ones while there are few."""
    of = {who: [n for n, sign in signs.items() if sign.known_to == who] for who in ("known", "visit", "unknown")}
    quasi = len(of["known"])
    roles: Roles = dict.fromkeys(of["known"], ("quasi", ""))
    for name in sorted(of["visit"], key=lambda n: facts[n].distinct):
        room = quasi < MAX_QUASI
        roles[name] = (
            ("quasi", "") if room else ("identifier", f"; {quasi} columns are generalised already: kept inside")
        )
        quasi += room
    for name in sorted(of["unknown"], key=lambda n: (facts[n].measured, facts[n].fine_grained, -entropy(facts[n]))):
        room = quasi < FEW_QUASI
        roles[name] = ("quasi", " that others may know") if room else _role_beyond_limit(facts[name])
        quasi += room
    return roles


def _role_beyond_limit(c: ColumnFacts) -> tuple[str, str]:
    """A column of unknown meaning beyond the handful: released as it is unless it tells records apart."""
    many = c.distinct > max(100, 0.02 * c.cells)  # a date or an age, in figures that nobody could read
    if many and not c.measured:
        return "identifier", " of unknown meaning, which tell records apart: kept inside"
    return "plain", " of unknown meaning: released as they are; if others may know them, write quasi"


def entropy(c: ColumnFacts) -> float:
    """Bits that a column tells of a record."""
    return entropy_bits(np.array(list(c.counts.values()), dtype=np.float64))


_ROLE_BY_KNOWLEDGE = {"nobody": "plain", "clinic": "plain", "person": "identifier"}


def _guess(c: ColumnFacts, sign: ColumnHint, roles: Roles) -> Guess:
    role, more = roles.get(c.name) or (
        _ROLE_BY_KNOWLEDGE[sign.known_to],
        "; released as it is" if sign.known_to == "clinic" else "",
    )
    unsure = sign.known_to == "unknown" or (sign.known_to in ("illness", "visit") and role == "identifier")
    why = sign.why + more
    variants = (
        c.distinct + bool(c.missing) - len({canonical_form(v) for v in (*c.counts, *([""] if c.missing else []))})
    )
    if variants and role == "sensitive":
        why += f"; {variants:,} of them are other spellings of another, and are merged"
    return Guess(c.name, role, why, sign.hierarchy, c.distinct, c.distinct < c.cells, variants > 0, unsure)


def without_disclosive(table: pa.Table, guesses: list[Guess]) -> list[Guess]:
    """What says the same as a protected column in other words, as the name of an illness beside its code, is kept inside."""
    sample = table.slice(0, _PAIR_SAMPLE)
    ills = {g.column: _codes(sample.column(g.column)) for g in guesses if g.role == "sensitive"}
    few = {g.column for g in guesses if g.role in ("quasi", "plain") and 1 < g.distinct <= len(sample) / 20}
    return [_withhold_disclosive(g, _codes(sample.column(g.column)), ills) if g.column in few else g for g in guesses]


def _codes(column: pa.ChunkedArray) -> Int64s:
    return encode_cells(column)[0].astype(np.int64)


def _withhold_disclosive(guess: Guess, own_codes: Int64s, ills: Mapping[str, Int64s]) -> Guess:
    told = discloses_partly if guess.role == "plain" else discloses
    ill = next((name for name, codes in ills.items() if told(own_codes, codes)), None)
    if ill is None:
        return guess
    return replace(guess, role="identifier", why=f"tells '{ill}', which is protected: kept inside", unsure=False)


def _promote_dependent(sample: pa.Table, guesses: list[Guess]) -> list[Guess]:
    """Plain columns that tell a quasi-identifier, or are told by one, become quasi-identifiers themselves."""
    codes = {g.column: _codes(sample.column(g.column)) for g in guesses if g.role in ("quasi", "plain")}
    known = {g.column: codes[g.column] for g in guesses if g.role == "quasi" and 1 < g.distinct <= len(sample) / 20}
    return [_promote_column(g, codes[g.column], known) if g.role == "plain" and g.distinct > 1 else g for g in guesses]


def _promote_column(guess: Guess, own_codes: Int64s, known: Mapping[str, Int64s]) -> Guess:
    twin = next(
        (name for name, codes in known.items() if discloses(own_codes, codes) or discloses(codes, own_codes)), None
    )
    if twin is None or guess.distinct > len(own_codes) / 20:
        return guess
    return replace(guess, role="quasi", why=f"tells '{twin}', which others know, or is told by it", unsure=False)


_WORDS = ("?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "missing", "Missing", "-", "--", ".")
_NUMBERS = ("-9", "-99", "-999", "-9999", "-9.0", "-99.0", "-999.0")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LETTERS = re.compile(r"[A-Z]{2}")
_MANY_CODES = 10


def missing_markers(columns: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """The markers among the values of the columns, each given with its counts.

    A word counts where no column seems to mean something else by it: NA among codes of two letters is Namibia, and -9 among other
    negative numbers is a number.

    >>> missing_markers({"race": {"Asian": 3, "?": 2}, "score": {"-9": 2, "11": 7}, "cold": {"-9": 1, "-12": 4}})
    ('?',)
    """
    tried = (word for word in _WORDS + _NUMBERS if any(word in counts for counts in columns.values()))
    return tuple(word for word in tried if all(_can_be_marker(word, counts) for counts in columns.values()))


def _can_be_marker(word: str, counts: Mapping[str, int]) -> bool:
    """Whether a word is no value of a column: it is not there, or unlike all that is."""
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
