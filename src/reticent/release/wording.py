"""The words of a guarantee, for people: the same on the command line, in the studio and in a report; and the judge lets no other pass.

Of a sentence, a hole stands for a number (`{number}`) or for names of the policy's columns or tables (`{names}`). A sentence may join several by `; `.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

SHAPES = {
    "generalized": "one table, its quasi-identifiers made coarser",
    "anatomy": "two tables: records with their quasi-identifiers, and per group the sensitive values",
    "m-distinct": "one release of a series, in groups that keep their sets of values",
    "veil": "one table, each sensitive value among candidates, as the published prior and line give them",
    "linked": "several tables of the same persons, linked by pseudonyms, their quasi-identifiers made coarser",
    "stream": "a stream, each record released at once with a list of candidate values",
}
_L = {
    "distinct": "every group shows at least {} different sensitive values",
    "entropy": "the sensitive values of every group are as varied as {} equally frequent ones",
    "recursive": "no sensitive value dominates its group (recursive (c, l) = {})",
    "frequency": "no sensitive value makes up more than 1/{} of its group",
}
_OTHER_CLAIMS = {
    "m-distinct": "every group shows at least {} different values, and no later release rules one of them out",
    "m-distinct*": "every group shows at least {} values whose possible updates do not meet",
    "m-invariance": "a person stands among the same {} values in every release",
    "average_risk": "picking a record at random among those that fit, a reader is right with probability {} at most on average",
    "max_risk": "given all releases, no value of a person is more likely than {:.4g}",
    "publications": "for {} publication only: whoever subtracts one from the next learns values of single persons",
    "veil": "each sensitive value stands among {} candidates, each slot of which is the true one with probability 1/{}",
}

ATTACKERS = {
    "informed": "a reader who knows how likely each value is for a person with these published fields (age, sex, ward): she is right "
    "more often than the claim says; `reticent audit --original` measures how often",
    "insiders": "a reader who knows sensitive values of other persons in the same group or class",
    "linked records": "several records of one person, or of persons whose values depend on one another",
    "publications": "the same persons in other publications, read together with this one",
    "presence": "whether a person is in the data, and what presence, return or absence says of the value",
}
"""Readers against whom no method claims anything unless it says so."""


def exclusions(*specific: str, persons: bool = False) -> tuple[str, ...]:
    """What a method leaves open: what is its own, then the readers that all of them leave open.

    Args:
        own: of the method.
        persons: the claims are of persons, whatever number of records they have.
    """
    readers = ATTACKERS | ({"linked records": "persons whose values depend on one another"} if persons else {})
    return (*specific, *readers.values())


def claims_in_words(claims: Mapping[str, Any]) -> list[str]:
    """Each claim as a sentence, in the order of files, whose keys are sorted."""
    sentences = []
    if "k" in claims:
        k, of = claims["k"], "records"
        if isinstance(k, dict):
            k, of = k.get("persons"), "persons"
        sentences.append(f"every published combination of quasi-identifiers stands for at least {k} {of}")
    sentences += [_L[kind].format(number) for kind, number in _entries(claims, "l", "distinct") if kind in _L]
    sentences += [
        f"the sensitive values of every group lie within {number} of those of the whole table ({kind} distance)"
        for kind, number in _entries(claims, "t", "equal")
    ]
    return sentences + [_other(name, value) for name, value in sorted(claims.items()) if name not in ("k", "l", "t")]


def _entries(claims: Mapping[str, Any], model: str, usual: str) -> list[tuple[str, Any]]:
    claim = claims.get(model, {})
    if not isinstance(claim, dict):
        return [(usual, claim)]
    own = {kind: number for kind, number in claim.items() if kind != "persons"}
    persons = claim.get("persons", {})
    # The same words: a person is what is counted where the policy names one.
    return sorted(((persons if isinstance(persons, dict) else {usual: persons}) | own).items())


def _other(name: str, value: Any) -> str:
    if name == "posterior":
        bound = value.get("at_most") if isinstance(value, dict) else value
        shown = f"{bound:.3g}" if isinstance(bound, int | float) else str(bound)
        return (
            "a reader who knows nothing but the design prior comes to believe no value of any person with more than "
            f"probability {shown}"
        )
    if name == "max_risk" and value == 1:
        return "no limit is kept for how likely a value of a person becomes, given all releases"
    if name == "population_uniqueness" and isinstance(value, dict):
        people = f"{value.get('population'):,}" if isinstance(value.get("population"), int) else "the"
        return f"of {people} people whom the table is a sample of, a share of {value.get('share')} at most stands alone, by estimate"
    if name == "k_map" and isinstance(value, int):
        return f"every published combination fits at least {value} people of the population that the custodian gave"
    plain = f"{name.replace('_', ' ')}: {value}"
    return (
        _OTHER_CLAIMS[name].format(value, value) if name in _OTHER_CLAIMS and isinstance(value, int | float) else plain
    )


_GENERALIZED = (
    "A cell such as [40, 60) stands for every value in it, {a, b} for one of the two, 12*** for every code that begins so, * for anything; after `or missing` the cell may also have been empty.",
    "Sensitive values are exact.",
)
_GROUPS = (
    "Records with the same group share the values that are listed for the group; whose is whose is not told.",
    "Do not divide a group's values evenly among its records: where fields and values go together that is wrong, often by a factor of two. Invert the groups, as `reticent ask` does.",
)
HOW_TO_READ: Mapping[str, tuple[str, ...]] = {
    "generalized": _GENERALIZED,
    "anatomy": _GROUPS,
    "m-distinct": (
        *_GENERALIZED[:1],
        "Each line is one value of its group, not of one person; counterfeits.csv says how many lines of a group belong to nobody.",
    ),
    "veil": (
        "Each record shows l candidates, in alphabetical order; the true value is one of them, except for the share eta of veil.json. A candidate that stands twice weighs twice.",
        "Do not count candidates, nor shares of them. The channel is known: `reticent ask` inverts it, without bias and with intervals that hold.",
    ),
    "linked": (
        *_GENERALIZED,
        "person and visit are pseudonyms of this release alone: they join its tables, and nothing else.",
        "Of a person those rows are published that all persons of the class have: numbers of visits and of diagnoses are lower bounds.",
    ),
    "stream": _GROUPS,
}
_COUNTS = "Counts and shares of values, by published fields, with the intervals that `reticent ask` gives."
MAY_CONCLUDE: Mapping[str, tuple[str, ...]] = {
    "generalized": (
        "Counts of values among published records, between the bounds that `reticent ask` gives.",
        "Relations between fields as coarse as they are published.",
    ),
    "anatomy": (_COUNTS, "Regressions on completed data sets, pooled by Rubin's rules."),
    "m-distinct": ("Counts of values among published records, between the bounds that `reticent ask` gives.",),
    "veil": (_COUNTS, "Regressions on completed data sets, pooled by Rubin's rules."),
    "linked": (
        "Counts of values among published records, and of records of the same person or visit.",
        "Relations between fields as coarse as they are published.",
    ),
    "stream": (_COUNTS, "Changes of the level over time, where the intervals show them."),
}
MAY_NOT_CONCLUDE = (
    "Anything about a single person: a candidate, a group or a class is no diagnosis.",
    "That two records belong to the same person, unless the release says so itself.",
    "Figures without their interval: what looks like a difference may be the noise of the method.",
)

_KNOWS_QUASI = "a reader who knows who is in the table and all their quasi-identifiers"
AGAINST = {
    "generalized": _KNOWS_QUASI,
    "anatomy": _KNOWS_QUASI,
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
UNMET_REQUIREMENTS = "k and t of the policy: an evolving table publishes quasi-identifiers as they are"
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
HOUSEHOLD = (
    "values that differ within a unit: its records with the same value show the same candidates, so that how many show them tells of "
    "the value, and sets that differ say that values do"
)
LINKED = (
    "several records of one person, or several tables of one house: candidates that are alike show which belong together, and k "
    "holds for each record, not for what they have in common"
)
REPUBLICATION = "some of these persons stand in other publications of the same store: laid side by side, they may tell more than each alone"
NOT_IN_LEDGER = "persons who stand in other publications of the same store: a release on Spark is not in its ledger"
_COUNTED_WITH_NOISE = "counted on the released persons themselves, with noise of epsilon = {number}, so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a)"
_TEMPLATES = (
    "PERSONS WITH SEVERAL RECORDS: {number} of {number} records repeat a value of the column '{names}', and each is counted as a separate person",
    "write person: {names} in the policy",
    "a reader who knows what a column that is released as it is says of a person ({names})",
    "a reader who knows what a column that is released as it is says of a person ({names} and {number} more)",
    "a reader who knows one sensitive value of a person and infers another from it",
    "each part of a combined value alone: the bound is for the combination",
    "an attacker who knows how many rows a person has in {names}, including none",
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
        f"a reader who knows all other records: {what} {_COUNTED_WITH_NOISE}"
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


def find_unknown_sentences(against: str, sentences: Iterable[str], names: Iterable[str]) -> list[str]:
    """The words of a guarantee that no engine says: `against`, and the number of each sentence of what is not covered.

    Sentences may name the policy's columns and tables.
    """
    listed = frozenset(names)
    odd = [] if against in AGAINST.values() else ["against"]
    return odd + [
        f"sentence {at}"
        for at, sentence in enumerate(sentences, 1)
        if not all(
            _is_known_clause(c, listed)
            for c in ([sentence] if sentence in _fixed_sentences() else sentence.split("; "))
        )
    ]


def count_absent_sentences(method: str, kind: str, sentences: Sequence[str], *, household: bool = False) -> int:
    """How many of the readers that every release of this method leaves open are not named; `unit`: the policy declares one."""
    own = {
        "veil": (*VEIL, HOUSEHOLD) if household else VEIL,
        "castle": CASTLE,
        "delay-free": DELAY_FREE,
        "l-diversity": L_DIVERSITY,
        **dict.fromkeys(("indexed", "enc", "encc", "eac", "red"), EVOLVING),
    }.get(method, SERIES if kind == "series" else ())
    readers = () if method == "veil" else tuple(words for name, words in ATTACKERS.items() if name != "linked records")
    return len({*own, *readers} - set(sentences))


def _is_known_clause(clause: str, names: frozenset[str]) -> bool:
    if clause in _fixed_sentences():
        return True
    fits = (pattern.fullmatch(clause) for pattern in _patterns())
    return any(
        found and all(group in names or set(group.split(", ")) <= names for group in found.groups()) for found in fits
    )


@cache
def _fixed_sentences() -> frozenset[str]:
    """The sentences without holes."""
    single = (
        RECORDS_IN_CLASS,
        RECORDS_IN_GROUPS,
        SINGLING_OUT,
        UNMET_REQUIREMENTS,
        HOUSEHOLD,
        LINKED,
        REPUBLICATION,
        NOT_IN_LEDGER,
    )
    own = (*EVOLVING, *SERIES, *L_DIVERSITY, *DELAY_FREE, *CASTLE, *VEIL)
    return frozenset([*single, *own, *exclusions(), *exclusions(persons=True)])


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(re.escape(words).replace(r"\{number\}", _NUMBER).replace(r"\{names\}", "(.+)"))
        for words in _TEMPLATES
    )
