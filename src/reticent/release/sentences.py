"""Every sentence that a guarantee may say: against whom, and what it leaves open. Engines say them, the judge lets no other pass.

A hole stands for a number (`{number}`) or for names of the policy's columns or tables (`{names}`). A sentence may join several by `; `.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from reticent.release.wording import READERS, not_covered

_KNOWN = "a reader who knows who is in the table and all their quasi-identifiers"
AGAINST = {
    "generalised": _KNOWN,
    "anatomy": _KNOWN,
    "evolving": "a reader who knows the method, who is in the table, and all their quasi-identifiers",
    "series": "a reader who knows all releases, every quasi-identifier of everybody and the update knowledge, and takes each person by itself",
    "delay-free": "a reader who knows everyone's quasi-identifiers but not how groups come about",
    "castle": "a reader who knows everyone's quasi-identifiers but not the order of arrival",
    "linked": "a reader who joins all tables of the release by all that joins them, knows who is in the data and the quasi-identifiers of "
    "every record of everybody, and knows no sensitive value of others",
    "veil": "a reader who knows the published prior, the method, who is in the data, all their published fields, and any number of "
    "other persons' records: each candidate keeps exactly its stated weight, its copies among l",
}
RECORDS_IN_CLASS = (
    "several records of one person in the same class (the policy names no person, so records are counted)"
)
RECORDS_IN_GROUPS = "several records of one person (the policy names no person, so each record is taken for one)"
SINGLING_OUT = "singling out by published quasi-identifiers"
EVOLVING = ("a second publication: safe for one publication only", "values more frequent than 1/l inside a class")
UNMET = "k and t of the policy: an evolving table publishes quasi-identifiers as they are"
SERIES = (
    "a reader who reasons over several persons jointly",
    "updates that are more or less likely than the update knowledge says",
)
L_DIVERSITY = ("a reader of several releases: side by side they rule out one value of a person after the other",)
DELAY_FREE = (
    "a reader who knows the algorithm: joining or opening a group tells of the value",
    "a person who comes back with the same value",
)
CASTLE = (
    "a reader who knows the order of arrival or how clusters come about",
    "a person who comes back in another cluster",
)
VEIL = (
    "a reader who can exclude candidates of weight x: a becomes a / (1 - x)",
    "persons whose values depend on one another beyond the published fields, unless a unit is declared",
    "what presence, return, absence or a correction says of a value, and whether a person is in the data",
    "the same person published elsewhere under another key or another name, and the loss of the key",
)
UNIT = (
    "values that differ within a unit: its records with the same value show the same candidates, so that how many show them tells of "
    "the value, and sets that differ say that values do"
)
LINKED = (
    "several records of one person, or several tables of one house: candidates that are alike show which belong together, and k "
    "holds for each record, not for what they have in common"
)
DESPITE = "some of these persons stand in other publications of the same store: laid side by side, they may tell more than each alone"
LEDGER = "persons who stand in other publications of the same store: a release on Spark is not in its ledger"
_COUNTED = "counted on the released persons themselves, with noise of epsilon = {number}, so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a)"
_HOLES = (
    "PERSONS WITH SEVERAL RECORDS: {number} of {number} records repeat the column '{names}' and are counted as persons of their own",
    "write person: {names} in the policy",
    "a reader who knows what a column that is released as it is says of a person ({names})",
    "a reader who knows what a column that is released as it is says of a person ({names} and {number} more)",
    "a reader who knows one sensitive value of a person and infers another from it",
    "each part of a combined value alone: the bound is for the combination",
    "a reader who knows how many rows somebody has in {names}, or that it is none",
    "a reader better informed than the prior by a factor kappa: a weight a becomes at most kappa a / (kappa a + 1 - a)",
    "nobody measured how far readers are ahead of this prior",
    "on {number} held-out persons of the past the best reader we trained reached kappa {number} (geometric mean",
    (
        "99th percentile {number}), believed her best guess with {number} (99th percentile {number}) and was right in {number} of the cases, in "
        "{number} without the release, at l = {number}"
    ),
    "later values of a person that differ from the first: they are not offered, as there is no kernel",
    "values of a person that follow one another otherwise than the published kernel says",
    "nobody measured how far it is from the truth",
    "its misfit on held-out persons was {number} nats per event",
    (
        "after {number} events one who knows a finer kernel is right in {number} of {number} held-out persons, one who knows the published "
        "kernel in {number}"
    ),
    "persons of the past whom the prior was counted on: it cost them epsilon = {number}",
    *(
        f"a reader who knows all other records: {what} {_COUNTED}"
        for what in (
            "the prior was",
            "totals by row and value were",
            "the prior was and totals by row and value were",
        )
    ),
    "truths that are not among their candidates: veil.json says which share, with noise",
    "truths that are not among their candidates: about {number} on held-out persons, and veil.json says which share, with noise",
)
_NUMBER = r"(?:-?[0-9][0-9.,]{0,11}(?:e[-+][0-9]{1,3})?%?|nan%?|-?inf%?)"


def strange(against: str, open_ends: Iterable[str], names: Iterable[str]) -> list[str]:
    """The words of a guarantee that no engine says: `against`, and the number of each sentence of what is not covered.

    Sentences may name the policy's columns and tables.
    """
    listed = frozenset(names)
    odd = [] if against in AGAINST.values() else ["against"]
    return odd + [
        f"sentence {at}"
        for at, sentence in enumerate(open_ends, 1)
        if not all(_said(c, listed) for c in ([sentence] if sentence in _plain() else sentence.split("; ")))
    ]


def lacking(method: str, kind: str, open_ends: Sequence[str], *, unit: bool = False) -> int:
    """How many of the readers that every release of this method leaves open are not named; `unit`: the policy declares one."""
    own = {
        "veil": (*VEIL, UNIT) if unit else VEIL,
        "castle": CASTLE,
        "delay-free": DELAY_FREE,
        "l-diversity": L_DIVERSITY,
        **dict.fromkeys(("indexed", "enc", "encc", "eac", "red"), EVOLVING),
    }.get(method, SERIES if kind == "series" else ())
    readers = () if method == "veil" else tuple(words for name, words in READERS.items() if name != "linked records")
    return len({*own, *readers} - set(open_ends))


def _said(clause: str, names: frozenset[str]) -> bool:
    if clause in _plain():
        return True
    fits = (pattern.fullmatch(clause) for pattern in _patterns())
    return any(
        found and all(group in names or set(group.split(", ")) <= names for group in found.groups()) for found in fits
    )


@cache
def _plain() -> frozenset[str]:
    """The sentences without holes."""
    single = (RECORDS_IN_CLASS, RECORDS_IN_GROUPS, SINGLING_OUT, UNMET, UNIT, LINKED, DESPITE, LEDGER)
    own = (*EVOLVING, *SERIES, *L_DIVERSITY, *DELAY_FREE, *CASTLE, *VEIL)
    return frozenset([*single, *own, *not_covered(), *not_covered(persons=True)])


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(re.escape(words).replace(r"\{number\}", _NUMBER).replace(r"\{names\}", "(.+)")) for words in _HOLES
    )
