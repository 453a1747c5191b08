"""The sentences of a report about attacks, columns and results, in the words of a data protection officer."""

from __future__ import annotations

from reticent.audit.attack import Outcome
from reticent.policy import Policy

TITLES = {
    "linkage": "Linkage with another table",
    "homogeneity": "Homogeneity",
    "skewness": "Skewness",
    "similarity": "Similarity",
    "minimality": "Minimality",
    "averaging": "Averaging over repeated records",
    "intersection": "Intersection over publications",
    "subtraction": "Subtraction between publications",
    "update-graph": "Update inference over a series (SUG)",
    "informed-attacker": "Informed attacker",
    "definetti": "Learning from the release alone (deFinetti)",
    "insiders": "Insiders",
    "outbreak": "Outbreak or new value",
    "joint": "Several publications combined",
    "presence": "Presence and absence",
    "linked-tables": "All tables joined",
}
WHY_NOT = {
    "linkage": "needs --original or --external, and records with quasi-identifiers",
    "homogeneity": "the release shows no groups of sensitive values",
    "skewness": "the release shows no groups of sensitive values",
    "similarity": "needs a hierarchy over the sensitive values that covers all of them",
    "minimality": "needs --original (at most 100,000 rows), l-diversity, and one level per column with a k-anonymous "
    "table one level finer",
    "averaging": "no person can be recognized more than once",
    "intersection": "needs several publications in groups",
    "subtraction": "needs several publications in groups",
    "update-graph": "needs several releases of a series with update rules",
    "informed-attacker": "needs --original with the sensitive column and at least 20 persons to learn from",
    "definetti": "needs --original to count right guesses, and published fields",
    "insiders": "needs --original, and persons whom the published fields single out",
    "outbreak": "needs --original, and a value that is new or at least 1.5 times as frequent as in the prior",
    "joint": "needs --original and several publications that single out the same persons",
    "presence": "needs --original with persons who match no published record",
    "linked-tables": "not a release of several tables",
}


def rationale(policy: Policy) -> list[tuple[str, str, str]]:
    """Return, per column, its name, its role with the reason, and the technique."""
    reasons = {
        "identifier": ("names a person or a record; never released", "removed"),
        "quasi": ("others may know it and use it to find a person", "generalized, or unchanged with a group number"),
        "sensitive": ("nobody may learn it about a person", "shown only within groups"),
        "plain": ("declared harmless by the policy", "unchanged"),
    }
    if policy.tables is not None:
        reasons["quasi"] = (reasons["quasi"][0], "generalized until the persons of a class are equal in all tables")
        reasons["sensitive"] = (reasons["sensitive"][0], "unchanged; the share of each value in a class is limited")
    rows = []
    for name, column in policy.columns.items():
        reason, technique = reasons[column.role]
        spec = column.hierarchy
        if column.transform is not None and column.transform.shift is not None:
            days = column.transform.shift
            technique = f"all dates of a person moved by the same number of days, at most {days}; {technique}"
        detail = f" (hierarchy: {spec.kind})" if spec else ""
        rows.append((f"{name}", f"{column.role}: {reason}", f"{technique}{detail}"))
    return rows


def attack_result(outcome: Outcome) -> tuple[str, str]:
    """Return a short text for the result of an attack, and its CSS class."""
    if outcome.refuted:
        return "refutes the claim", "bad"
    if outcome.claim is not None:
        return "within the claim", "good"
    if outcome.sure and outcome.attack != "skewness":
        return "succeeds; the release claims no bound", "warn"
    return "the release claims no bound", "soft"
