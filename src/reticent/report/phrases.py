"""The words of a report: claims, adversaries and verdicts as a data-protection officer would read them out."""

from __future__ import annotations

from reticent.audit.attack import Outcome
from reticent.policy import Policy

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
    "update-graph": "Update inference over a series (SUG)",
    "informed-attacker": "The informed reader",
    "definetti": "Learning from the release alone (deFinetti)",
    "insiders": "Insiders",
    "outbreak": "An outbreak, or a new value",
    "joint": "Several publications at once",
    "presence": "Presence and absence",
    "linked-tables": "All tables joined",
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
    "update-graph": "needs several releases of a series with update rules",
    "informed-attacker": "needs --original with the sensitive column and at least 20 persons to learn from",
    "definetti": "needs --original to count right guesses, and published fields",
    "insiders": "needs --original, and persons whom the published fields single out",
    "outbreak": "needs --original, and a value that is new or half as frequent again as in the prior of the release",
    "joint": "needs --original and several publications that single out the same persons",
    "presence": "needs --original; every person of it may be one of the published records",
    "linked-tables": "not a release of several tables",
}


def rationale(policy: Policy) -> list[tuple[str, str, str]]:
    """Per column: role, why, and what is done to it."""
    why = {
        "identifier": ("names a person or a record; never released", "removed"),
        "quasi": ("others may know it and find the person by it", "generalised, or left as it is beside a group"),
        "sensitive": ("what nobody may learn about a person", "shown within groups only"),
        "plain": ("declared harmless by the policy; released as it is", "unchanged"),
    }
    if policy.tables is not None:
        why["quasi"] = (why["quasi"][0], "made coarser until the persons of a class are alike in all tables")
        why["sensitive"] = (why["sensitive"][0], "as it is; no value is that of too many persons of a class")
    rows = []
    for name, column in policy.columns.items():
        reason, done = why[column.role]
        spec = column.hierarchy
        if column.transform is not None and column.transform.shift is not None:
            done = f"all dates of a person moved by the same number of days, at most {column.transform.shift}; {done}"
        rows.append((f"{name}", f"{column.role}: {reason}", f"{done}{f' (hierarchy: {spec.kind})' if spec else ''}"))
    return rows


def attack_result(outcome: Outcome) -> tuple[str, str]:
    """One word for an attack's result, and its colour."""
    if outcome.refuted:
        return "refutes the claim", "bad"
    if outcome.claim is not None:
        return "within the claim", "good"
    if outcome.sure and outcome.attack != "skewness":
        return "succeeds; nothing was claimed", "warn"
    return "no claim to compare with", "soft"
