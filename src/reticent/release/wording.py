"""The sentences of a guarantee, the same on the command line, in the studio and in reports. The verifier accepts no others.

In a template, `{number}` stands for a number and `{names}` for names of columns or tables of the policy. A sentence may
join several templates by `; `.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

SHAPES = {
    "generalized": "one table with generalized quasi-identifiers",
    "anatomy": "two tables: records with their quasi-identifiers, and the sensitive values of each group",
    "m-distinct": "one release of a series, in groups whose sets of values stay the same",
    "veil": "one table in which each sensitive value is among candidates that are drawn from the published prior",
    "linked": "several tables of the same persons, linked by pseudonyms, with generalized quasi-identifiers",
    "stream": "a stream that releases each record at once with a list of candidate values",
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
    "m-invariance": "a person has the same {} candidate values in every release",
    "average_risk": "an attacker who picks a matching record at random is right with an average probability of at most {}",
    "max_risk": "given all releases, no value of a person is more likely than {:.4g}",
    "publications": "for {} publication only: an attacker who compares two publications learns values of single persons",
    "veil": "each sensitive value is among {} candidates, and each slot holds the true value with probability 1/{}",
}

ATTACKERS = {
    "informed": "an attacker who knows how likely each value is for a person with these published fields (age, sex, ward) is right "
    "more often than the claim says; `reticent audit --original` measures how often",
    "insiders": "an attacker who knows sensitive values of other persons in the same group or class",
    "linked records": "several records of one person, or of persons whose values depend on one another",
    "publications": "the same persons in other publications that are combined with this one",
    "presence": "whether a person is in the data, and what presence, return or absence says about the value",
}
"""What no method covers unless it says so."""


def exclusions(*specific: str, persons: bool = False) -> tuple[str, ...]:
    """List what a method does not cover: first its own exclusions, then those of all methods.

    Args:
        *specific: the exclusions of the method.
        persons: whether the claims are about persons, however many records they have.
    """
    attackers = ATTACKERS | ({"linked records": "persons whose values depend on one another"} if persons else {})
    return (*specific, *attackers.values())


def claims_in_words(claims: Mapping[str, Any]) -> list[str]:
    """Return each claim as a sentence, in the order of the sorted keys of the manifest."""
    sentences = []
    if "k" in claims:
        k, of = claims["k"], "records"
        if isinstance(k, dict):
            k, of = k.get("persons"), "persons"
        sentences.append(f"every published combination of quasi-identifiers has at least {k} {of}")
    sentences += [_L[kind].format(number) for kind, number in _entries(claims, "l", "distinct") if kind in _L]
    sentences += [
        f"the distribution of the sensitive value in every group is within {number} of that of the whole table ({kind} distance)"
        for kind, number in _entries(claims, "t", "equal")
    ]
    return sentences + [_other(name, value) for name, value in sorted(claims.items()) if name not in ("k", "l", "t")]


def _entries(claims: Mapping[str, Any], model: str, usual: str) -> list[tuple[str, Any]]:
    claim = claims.get(model, {})
    if not isinstance(claim, dict):
        return [(usual, claim)]
    own = {kind: number for kind, number in claim.items() if kind != "persons"}
    persons = claim.get("persons", {})
    # The same sentence: if the policy names the person, persons are counted.
    return sorted(((persons if isinstance(persons, dict) else {usual: persons}) | own).items())


def _other(name: str, value: Any) -> str:
    if name == "posterior":
        bound = value.get("at_most") if isinstance(value, dict) else value
        shown = f"{bound:.3g}" if isinstance(bound, int | float) else str(bound)
        return f"an attacker who knows only the design prior gives no value of any person a probability above {shown}"
    if name == "max_risk" and value == 1:
        return "all releases together set no limit on the probability of a value of a person"
    if name == "population_uniqueness" and isinstance(value, dict):
        people = f"{value.get('population'):,}" if isinstance(value.get("population"), int) else "the"
        return f"an estimated share of at most {value.get('share')} of {people} people in the population is unique"
    if name == "k_map" and isinstance(value, int):
        return f"every published combination matches at least {value} people of the population table"
    plain = f"{name.replace('_', ' ')}: {value}"
    return (
        _OTHER_CLAIMS[name].format(value, value) if name in _OTHER_CLAIMS and isinstance(value, int | float) else plain
    )


_GENERALIZED = (
    "A cell such as [40, 60) means any value in the interval, {a, b} one of the two, 12*** any code that begins with 12, and * any value; with `or missing` the cell may also have been empty.",
    "Sensitive values are exact.",
)
_GROUPS = (
    "Records of one group share the values that are listed for the group; the release does not say who has which value.",
    "Do not divide the values of a group evenly among its records: if fields and values are related, the result is often wrong by a factor of two. Use `reticent ask`, which corrects for the groups.",
)
HOW_TO_READ: Mapping[str, tuple[str, ...]] = {
    "generalized": _GENERALIZED,
    "anatomy": _GROUPS,
    "m-distinct": (
        *_GENERALIZED[:1],
        "Each row is one value of its group, not of one person; counterfeits.csv states how many rows of a group belong to nobody.",
    ),
    "veil": (
        "Each record shows l candidates in alphabetical order; the true value is one of them, except at the omission rate that veil.json states. A candidate that occurs twice counts twice.",
        "Do not count candidates or fractions of them. Use `reticent ask`, which gives unbiased estimates with intervals.",
    ),
    "linked": (
        *_GENERALIZED,
        "person and visit are pseudonyms of this release only: they join its tables and nothing else.",
        "A person's rows are published only if all persons of the class have such rows: the numbers of visits and diagnoses are lower bounds.",
    ),
    "stream": _GROUPS,
}
_COUNTS = "Counts and shares of values, by published fields, with the intervals that `reticent ask` gives."
MAY_CONCLUDE: Mapping[str, tuple[str, ...]] = {
    "generalized": (
        "Counts of values among published records, between the bounds that `reticent ask` gives.",
        "Relations between fields, at the level at which they are published.",
    ),
    "anatomy": (_COUNTS, "Regressions on completed data sets, pooled by Rubin's rules."),
    "m-distinct": ("Counts of values among published records, between the bounds that `reticent ask` gives.",),
    "veil": (_COUNTS, "Regressions on completed data sets, pooled by Rubin's rules."),
    "linked": (
        "Counts of values among published records, and of records of the same person or visit.",
        "Relations between fields, at the level at which they are published.",
    ),
    "stream": (_COUNTS, "Changes over time, if the intervals show them."),
}
MAY_NOT_CONCLUDE = (
    "Anything about a single person: a candidate, a group or a class is not a diagnosis.",
    "That two records belong to the same person, unless the release says so itself.",
    "Figures without their interval: an apparent difference may be noise of the method.",
)

_KNOWS_QUASI = "an attacker who knows who is in the table and all their quasi-identifiers"
AGAINST = {
    "generalized": _KNOWS_QUASI,
    "anatomy": _KNOWS_QUASI,
    "evolving": "an attacker who knows the method, who is in the table, and all their quasi-identifiers",
    "series": "an attacker who knows all releases, all quasi-identifiers of all persons and the update knowledge, and considers each person separately",
    "delay-free": "an attacker who knows all quasi-identifiers of all persons but not how groups are formed",
    "castle": "an attacker who knows all quasi-identifiers of all persons but not the order of arrival",
    "linked": "an attacker who joins all tables of the release, knows who is in the data and the quasi-identifiers of "
    "every record, and knows no sensitive value of other persons",
    "veil": "an attacker who knows the published prior, the method, who is in the data, all their published fields, and any number of "
    "other persons' records: each candidate keeps exactly its stated weight, its number of copies divided by l",
}
RECORDS_IN_CLASS = (
    "several records of one person in the same class (the policy names no person, so records are counted)"
)
RECORDS_IN_GROUPS = "several records of one person (the policy names no person, so each record counts as one)"
SINGLING_OUT = "singling out by published quasi-identifiers"
EVOLVING = ("a second publication: safe for one publication only", "values more frequent than 1/l inside a class")
UNMET_REQUIREMENTS = "k and t of the policy: an evolving table publishes quasi-identifiers unchanged"
SERIES = (
    "an attacker who considers several persons jointly",
    "updates that are more or less likely than the update knowledge says",
)
L_DIVERSITY = ("an attacker who compares several releases: together they exclude more and more values of a person",)
DELAY_FREE = (
    "an attacker who knows the algorithm: joining or opening a group discloses information about the value",
    "a person who returns with the same value",
)
CASTLE = (
    "an attacker who knows the order of arrival or how clusters are formed",
    "a person who returns in another cluster",
)
VEIL = (
    "an attacker who can exclude candidates of weight x: a weight a becomes a / (1 - x)",
    "persons whose values depend on one another beyond the published fields, unless the policy declares a household",
    "what presence, return, absence or a correction says about a value, and whether a person is in the data",
    "the same person published elsewhere under another key or another name, and the loss of the key",
)
HOUSEHOLD = (
    "values that differ within a household: records with the same value show the same candidates, so their number discloses "
    "information about the value, and different candidates show that the values differ"
)
LINKED = (
    "several records of one person, or several tables of one parameter set: equal candidates show which records belong together, "
    "and k holds for each record, not for their combination"
)
REPUBLICATION = "some of these persons are in other publications of the same store: together, the publications may disclose more than each alone"
_COUNTED_WITH_NOISE = "computed from the released persons, with noise of epsilon = {number}, so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a)"
REPEATED_PERSONS = "PERSONS WITH SEVERAL RECORDS"
_TEMPLATES = (
    REPEATED_PERSONS
    + ": {number} of {number} records repeat a value of the column '{names}', and each is counted as a separate person",
    "write person: {names} in the policy",
    "an attacker who knows what a plain (unchanged) column says about a person ({names})",
    "an attacker who knows what a plain (unchanged) column says about a person ({names} and {number} more)",
    "an attacker who knows one sensitive value of a person and infers another from it",
    "each part of a combined value alone: the bound is for the combination",
    "an attacker who knows how many rows a person has in {names}, including none",
    "an attacker better informed than the prior by an odds ratio r: a weight a becomes at most ra / (ra + 1 - a)",
    "the odds ratio was not measured for this prior",
    "on {number} held-out persons of the past the best attacker we trained reached an odds ratio of {number} (geometric mean",
    (
        "99th percentile {number}), gave the best guess a probability of {number} (99th percentile {number}) and was right in {number} of the cases, in "
        "{number} without the release, at l = {number}"
    ),
    "later values of a person that differ from the first: they are omitted, as there is no transition kernel",
    "values of a person that follow one another in another way than the published transition kernel says",
    "the misfit of the kernel was not measured",
    "its misfit on held-out persons was {number} nats per event",
    (
        "after {number} events an attacker with a finer kernel is right for {number} of {number} held-out persons, an attacker with the "
        "published kernel for {number}"
    ),
    "persons of the past from whom the prior was made: it cost them epsilon = {number}",
    *(
        f"an attacker who knows all other records: {what} {_COUNTED_WITH_NOISE}"
        for what in (
            "the prior was",
            "counts by stratum and value were",
            "the prior was and counts by stratum and value were",
        )
    ),
    "true values that are not among their candidates: veil.json states the omission rate, with noise",
    "true values that are not among their candidates: about {number} on held-out persons, and veil.json states the omission rate, with noise",
)
_NUMBER = r"(?:-?[0-9][0-9.,]{0,11}(?:e[-+][0-9]{1,3})?%?|nan%?|-?inf%?)"


def find_unknown_sentences(against: str, sentences: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return which parts of a guarantee no engine writes: `against`, and the numbers of the sentences not covered.

    Sentences may name columns and tables of the policy.
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
    """Count the required exclusions of a method that the sentences lack; `household`: whether the policy declares one."""
    own = {
        "veil": (*VEIL, HOUSEHOLD) if household else VEIL,
        "castle": CASTLE,
        "delay-free": DELAY_FREE,
        "l-diversity": L_DIVERSITY,
        **dict.fromkeys(("indexed", "enc", "encc", "eac", "red"), EVOLVING),
    }.get(method, SERIES if kind == "series" else ())
    attackers = (
        () if method == "veil" else tuple(words for name, words in ATTACKERS.items() if name != "linked records")
    )
    return len({*own, *attackers} - set(sentences))


def _is_known_clause(clause: str, names: frozenset[str]) -> bool:
    if clause in _fixed_sentences():
        return True
    fits = (pattern.fullmatch(clause) for pattern in _patterns())
    return any(
        found and all(group in names or set(group.split(", ")) <= names for group in found.groups()) for found in fits
    )


@cache
def _fixed_sentences() -> frozenset[str]:
    """Return the sentences without placeholders."""
    single = (RECORDS_IN_CLASS, RECORDS_IN_GROUPS, SINGLING_OUT, UNMET_REQUIREMENTS, HOUSEHOLD, LINKED, REPUBLICATION)
    own = (*EVOLVING, *SERIES, *L_DIVERSITY, *DELAY_FREE, *CASTLE, *VEIL)
    return frozenset([*single, *own, *exclusions(), *exclusions(persons=True)])


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(re.escape(words).replace(r"\{number\}", _NUMBER).replace(r"\{names\}", "(.+)"))
        for words in _TEMPLATES
    )
