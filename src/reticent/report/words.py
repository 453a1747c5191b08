"""The words of a report: claims, adversaries and verdicts as a data-protection officer would read them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reticent.audit.attack import Outcome
    from reticent.policy import Policy

KINDS = {
    "generalised": "one table, its quasi-identifiers made coarser",
    "anatomy": "two tables: records with their quasi-identifiers, and per group the sensitive values",
    "m-distinct": "one release of a series, in groups that keep their sets of values",
    "stream": "a stream, each record released at once with a list of candidate values",
}
_L = {
    "distinct": "every group shows at least {} different sensitive values",
    "entropy": "the sensitive values of every group are as varied as {} equally frequent ones",
    "recursive": "no sensitive value dominates its group (recursive (c, l) = {})",
    "frequency": "no sensitive value makes up more than 1/{} of its group",
}
TITLES = {
    "linkage": "Linkage with another table",
    "homogeneity": "Homogeneity",
    "skewness": "Skewness",
    "similarity": "Similarity",
    "minimality": "Minimality",
    "averaging": "Averaging over repeated appearances",
    "join-or-open": "Join-or-open inference on a stream",
    "intersection": "Intersection over publications",
    "subtraction": "Subtraction between publications",
    "sug": "Update inference over a series (SUG)",
}
WHY_NOT = {
    "linkage": "needs --original or --external, and records with quasi-identifiers",
    "homogeneity": "the release shows no groups of sensitive values",
    "skewness": "the release shows no groups of sensitive values",
    "similarity": "needs a hierarchy over the sensitive values that covers all of them",
    "minimality": "needs --original (at most 100,000 rows), l-diversity, and one level per column with a safe finer one",
    "averaging": "nobody can be recognised more than once",
    "join-or-open": "not a stream of groups",
    "intersection": "needs several publications in groups",
    "subtraction": "needs several publications in groups",
    "sug": "needs several releases of a series with update rules",
}


def claims_in_words(claims: Mapping[str, Any]) -> list[str]:
    """Each claim as a sentence."""
    said = []
    if "k" in claims:
        said.append(f"every published combination of quasi-identifiers stands for at least {claims['k']} records")
    given = claims.get("l", {})
    entries = given if isinstance(given, dict) else {"distinct": given}
    said += [_L[kind].format(number) for kind, number in entries.items() if kind in _L]
    given = claims.get("t", {})
    entries = given if isinstance(given, dict) else {"equal": given}
    said += [
        f"the sensitive values of every group lie within {number} of those of the whole table ({kind} distance)"
        for kind, number in entries.items()
    ]
    said += [_other(name, value) for name, value in claims.items() if name not in ("k", "l", "t")]
    return said


def _other(name: str, value: Any) -> str:
    if name == "posterior":
        bound = value.get("at_most", value.get("max")) if isinstance(value, dict) else value
        shown = f"{bound:.3g}" if isinstance(bound, int | float) else str(bound)
        return f"no reader comes to believe any value of any person with more than probability {shown}, relative to the stated design prior"
    return f"{name.replace('_', ' ')}: {value}"


def rationale(policy: Policy) -> list[tuple[str, str, str]]:
    """Per column: role, why, and what is done to it."""
    why = {
        "identifier": ("names a person or a record; never released", "removed"),
        "quasi": ("others may know it and find the person by it", "generalised, or left as it is beside a group"),
        "sensitive": ("what nobody may learn about a person", "shown within groups only"),
        "plain": ("declared harmless by the policy; released as it is", "unchanged"),
    }
    rows = []
    for name, column in policy.columns.items():
        reason, done = why[column.role]
        spec = column.hierarchy
        rows.append((f"{name}", f"{column.role}: {reason}", f"{done}{f' (hierarchy: {spec.kind})' if spec else ''}"))
    return rows


def verdict_of(outcome: Outcome) -> tuple[str, str]:
    """One word for an attack's result, and its colour."""
    if outcome.refuted:
        return "refutes the claim", "bad"
    if outcome.claim is not None:
        return "within the claim", "good"
    if outcome.sure and outcome.attack != "skewness":
        return "succeeds; nothing was claimed", "warn"
    return "no claim to compare with", "soft"
