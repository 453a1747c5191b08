"""The words of a guarantee, for people: the same on the command line, in the studio and in a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHAPES = {
    "generalised": "one table, its quasi-identifiers made coarser",
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
_OTHERS = {
    "m-distinct": "every group shows at least {} different values, and no later release rules one of them out",
    "m-distinct*": "every group shows at least {} values whose possible updates do not meet",
    "m-invariance": "a person stands among the same {} values in every release",
    "average_risk": "picking a record at random among those that fit, a reader is right with probability {} at most on average",
    "max_risk": "given all releases, no value of a person is more likely than {:.4g}",
    "publications": "for {} publication only: whoever subtracts one from the next learns values of single persons",
    "veil": "each sensitive value stands among {} candidates, each slot of which is the true one with probability 1/{}",
}

READERS = {
    "informed": "a reader who knows how likely each value is for a person with these published fields (age, sex, ward): she is right "
    "more often than the claim says; `reticent audit --original` measures how often",
    "insiders": "a reader who knows sensitive values of other persons in the same group or class",
    "linked records": "several records of one person, or of persons whose values depend on one another",
    "publications": "the same persons in other publications, read together with this one",
    "presence": "whether a person is in the data, and what presence, return or absence says of the value",
}
"""Readers against whom no method claims anything unless it says so."""


def not_covered(*own: str, persons: bool = False) -> tuple[str, ...]:
    """What a method leaves open: what is its own, then the readers that all of them leave open.

    Args:
        own: of the method.
        persons: the claims are of persons, whatever number of records they have.
    """
    readers = READERS | ({"linked records": "persons whose values depend on one another"} if persons else {})
    return (*own, *readers.values())


def claims_in_words(claims: Mapping[str, Any]) -> list[str]:
    """Each claim as a sentence."""
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
    return sentences + [_other(name, value) for name, value in claims.items() if name not in ("k", "l", "t")]


def _entries(claims: Mapping[str, Any], model: str, usual: str) -> list[tuple[str, Any]]:
    claim = claims.get(model, {})
    if not isinstance(claim, dict):
        return [(usual, claim)]
    own = {kind: number for kind, number in claim.items() if kind != "persons"}
    # The same words: a person is what is counted where the policy names one.
    return list((claim.get("persons", {}) | own).items())


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
    return _OTHERS[name].format(value, value) if name in _OTHERS and isinstance(value, int | float) else plain


_GENERALISED = (
    "A cell such as [40, 60) stands for every value in it, {a, b} for one of the two, 12*** for every code that begins so, * for anything; after `or missing` the cell may also have been empty.",
    "Sensitive values are exact.",
)
_GROUPS = (
    "Records with the same group share the values that are listed for the group; whose is whose is not told.",
    "Do not divide a group's values evenly among its records: where fields and values go together that is wrong, often by a factor of two. Invert the groups, as `reticent ask` does.",
)
HOW_TO_READ: Mapping[str, tuple[str, ...]] = {
    "generalised": _GENERALISED,
    "anatomy": _GROUPS,
    "m-distinct": (
        *_GENERALISED[:1],
        "Each line is one value of its group, not of one person; counterfeits.csv says how many lines of a group belong to nobody.",
    ),
    "veil": (
        "Each record shows l candidates, in alphabetical order; the true value is one of them, except for the share eta of veil.json. A candidate that stands twice weighs twice.",
        "Do not count candidates, nor shares of them. The channel is known: `reticent ask` inverts it, without bias and with intervals that hold.",
    ),
    "linked": (
        *_GENERALISED,
        "person and visit are pseudonyms of this release alone: they join its tables, and nothing else.",
        "Of a person those rows are published that all persons of the class have: numbers of visits and of diagnoses are lower bounds.",
    ),
    "stream": _GROUPS,
}
_COUNTS = "Counts and shares of values, by published fields, with the intervals that `reticent ask` gives."
MAY: Mapping[str, tuple[str, ...]] = {
    "generalised": (
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
MAY_NOT = (
    "Anything about a single person: a candidate, a group or a class is no diagnosis.",
    "That two records belong to the same person, unless the release says so itself.",
    "Figures without their interval: what looks like a difference may be the noise of the method.",
)
