"""Requirements: what a release claims and what its policy requires, in one form and checked on groups.

Requirements on all classes together, or on a population (average risk, population uniqueness, k-map), are recomputed
from the published rows: each requirement of the policy, and each claim of the release where it is stricter.

Not covered: whether the population of k-map is the real one; k-map counts records, not persons.
Cost: for k-map, the pairs of classes and people of the population that fit (`row_matching`).
Reference: see `reticent.policy.models`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from reticent.arrays import Bools, Int64s
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.hierarchy import build_levels
from reticent.verify import measures
from reticent.verify.groups import Groups, number_rows, present_columns, rank_texts
from reticent.verify.labels.row_matching import Field, match_rows
from reticent.verify.published import text_table
from reticent.verify.result import Finding

_DEFAULT_KINDS = {"l": "distinct", "t": "equal"}
_KINDS = {"l": ("distinct", "entropy", "recursive", "frequency"), "t": ("equal", "ordered", "hierarchical")}


class UnreadableClaimError(DataError):
    """A claim of a release is malformed; the verifier refutes the release."""

    def __init__(self) -> None:
        super().__init__("release.json: a claim is malformed.", hint="Restore release.json, or make the release again.")


@dataclass(frozen=True)
class Requirement:
    """One model and its parameters: ("k", "", (5,)), ("l", "recursive", (4, 3)), ("t", "ordered", (0.2,))."""

    model: str
    kind: str
    numbers: tuple[Fraction, ...]
    persons: bool = False

    def __str__(self) -> str:
        return self._words() + (" of persons" if self.persons else "")

    @property
    def visible(self) -> bool:
        """Whether records can refute the requirement: k persons have k records, l persons have l values."""
        return not self.persons or self.model == "k" or self.kind == "distinct"

    def _words(self) -> str:
        shown = ", ".join(f"{float(number):g}" for number in self.numbers)
        return {
            "": f"{self.model} = {shown}",
            "recursive": f"recursive ({shown})-diversity",
            "frequency": f"no value above 1/{shown} of a group",
        }.get(self.kind, f"{self.model} = {shown} ({self.kind})")


def requirements(claims: Mapping[str, Any]) -> list[Requirement]:
    """Read `{"k": 5, "l": {"distinct": 3}, "t": 0.2}`; unreadable entries raise UnreadableClaimError."""
    rules = []
    for model in ("k", "l", "t"):
        claim = claims.get(model)
        if claim is None:
            continue
        persons = isinstance(claim, dict) and "persons" in claim
        if persons:
            others = {kind: numbers for kind, numbers in claim.items() if kind != "persons"}
            rules += [_requirement(model, kind, numbers) for kind, numbers in others.items()]
            claim = claim["persons"]
        entries = claim if isinstance(claim, dict) else {_DEFAULT_KINDS.get(model, ""): claim}
        rules += [replace(_requirement(model, kind, numbers), persons=persons) for kind, numbers in entries.items()]
    return rules


def person_requirements(claims: Mapping[str, Any]) -> list[Requirement]:
    """Return the claims about persons; the release alone cannot show them."""
    return [requirement for requirement in requirements(claims) if requirement.persons]


def policy_requirements(policy: Policy, *, persons: bool = False) -> list[Requirement]:
    """Return what the privacy section of the policy requires, of records or of persons."""
    privacy = policy.privacy
    claims: dict[str, Any] = {"k": privacy.k}
    if privacy.l is not None:
        claims["l"] = {privacy.l.kind: [privacy.l.c, privacy.l.l] if privacy.l.kind == "recursive" else privacy.l.l}
    if privacy.t is not None:
        claims["t"] = {privacy.t.kind: privacy.t.t}
    return [replace(requirement, persons=persons) for requirement in requirements(claims)]


def _requirement(model: str, kind: str, numbers: Any) -> Requirement:
    parameters = numbers if isinstance(numbers, list | tuple) else [numbers]
    count = 2 if kind == "recursive" else 1
    try:
        exact = tuple(map(_exact_fraction, parameters))
    except (TypeError, ValueError):
        exact = ()
    if (
        len(exact) != count
        or min(exact) < 0
        or (model != "t" and exact[-1] < 1)
        or kind not in _KINDS.get(model, ("",))
    ):
        raise UnreadableClaimError
    return Requirement(model, kind, exact)


def _exact_fraction(number: Any) -> Fraction:
    """Return a number exactly as written. Texts are refused: "1e999999999" would take forever."""
    if isinstance(number, str):
        raise TypeError
    return Fraction(str(number))


def check_size(sizes: Int64s, requirement: Requirement, where: str) -> Finding:
    """Check that every group is large enough: k records or persons, or a matching of l persons with l values."""
    least = math.ceil(requirement.numbers[0])
    return _check_groups(str(requirement), sizes, sizes >= least, float(least), where, worst=np.min)


def check_l(groups: Groups, requirement: Requirement, where: str) -> Finding:
    """Check that every group is as diverse as required."""
    figures, holds, required, worst = diversity(groups, requirement)
    return _check_groups(str(requirement), figures, holds, required, where, worst=worst)


def diversity(groups: Groups, requirement: Requirement) -> tuple[NDArray[Any], Bools, float, Any]:
    """Return the l-diversity figure of each group, whether it is enough, the bound, and how to pick the worst figure."""
    number, distinct = requirement.numbers[-1], groups.distinct()
    enough = distinct >= math.ceil(number)
    if requirement.kind == "distinct":
        return distinct, enough, float(number), np.min
    if requirement.kind == "entropy":
        return *measures.entropy_l(groups, number), float(number), np.min
    if requirement.kind == "frequency":
        return *measures.largest_share(groups, 1 / number), float(1 / number), np.max
    ratio, holds = measures.recursive_l(groups, int(number), requirement.numbers[0])
    return ratio, holds & enough, float(requirement.numbers[0]), np.max


def check_t(
    groups: Groups,
    requirement: Requirement,
    reference: Mapping[str | None, int],
    policy: Policy,
    column: str,
    *,
    slack: Fraction | int = 0,
) -> Finding:
    """Check that every group is as close to the reference distribution as required."""
    where = f"column '{column}'"
    known = [value for value in reference if reference[value] > 0]
    place = {value: i for i, value in enumerate(known)}
    # Values that occur only in records that the policy suppresses are in no group.
    unknown = sum(times > 0 and value not in place for value, times in groups.totals().items())
    if unknown or not known:
        return Finding(
            str(requirement),
            holds=False,
            measured=unknown,
            required=0,
            where=f"{where}: values are not in the reference distribution",
        )
    places = np.array([place.get(value, 0) for value in groups.values], dtype=np.int64)
    counts = np.array([reference[value] for value in known], dtype=np.int64)
    parts = _distance_parts(requirement.kind, known, policy, column)
    bound = requirement.numbers[0] + slack
    distances, holds = measures.distance(groups, counts, places, parts, bound)
    return _check_groups(str(requirement), distances, holds, float(bound), where, worst=np.max)


def _distance_parts(kind: str, known: list[str | None], policy: Policy, column: str) -> list[measures.Part]:
    if kind == "equal":
        return measures.equal_parts(len(known))
    if kind == "ordered":
        return measures.ordered_parts(np.argsort(rank_texts(known)))
    spec = policy.columns[column].hierarchy
    return measures.tree_parts(
        build_levels(spec, pa.array(known, pa.string()), column=column, base=policy.base).node_ids
    )


def _check_groups(
    claim: str, figures: NDArray[Any], holds: Bools, required: float, where: str, *, worst: Any
) -> Finding:
    failing = int((~holds).sum())
    if len(figures) == 0:
        return Finding(claim, holds=True, measured=None, required=required, where=where)
    place = where if not failing else f"{where}{': ' if where else ''}{failing} of {len(figures)} groups fail"
    figure = float(worst(figures))
    return Finding(claim, failing == 0, round(figure, 12) if math.isfinite(figure) else None, required, place)


OVERALL_CLAIMS = ("average_risk", "population_uniqueness", "k_map")


def check_overall(data: pa.Table, rows: Int64s, size: int, claims: Mapping[str, Any], policy: Policy) -> list[Finding]:
    """Check each requirement on all classes together."""
    sizes = np.bincount(rows, minlength=size).astype(np.int64)
    privacy = policy.privacy
    findings = []
    risks = [claims.get("average_risk"), privacy.average_risk]
    if any(risk is not None for risk in risks):
        findings.append(_check_average_risk(sizes, min(_number(risk) for risk in risks if risk is not None)))
    uniqueness = privacy.population_uniqueness
    claim = claims.get("population_uniqueness")
    if uniqueness is not None:
        findings.append(_check_uniqueness(sizes, uniqueness.share, uniqueness.population))
    elif isinstance(claim, dict):
        findings.append(_check_uniqueness(sizes, _number(claim.get("share")), int(_number(claim.get("population")))))
    if privacy.k_map is not None:
        findings.append(_check_k_map(data, policy))
    elif "k_map" in claims:
        findings.append(Finding("k-map", holds=False, where="the policy names no population"))
    return findings


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableClaimError
    return float(value)


def _check_average_risk(sizes: Int64s, threshold: float) -> Finding:
    # The mean over records; the engines count classes instead.
    risks = np.repeat(1.0 / sizes, sizes)
    mean = float(risks.mean()) if len(risks) else 0.0
    return Finding(f"average risk = {threshold:g}", mean <= threshold * (1 + 1e-12), round(mean, 9), threshold)


def _check_uniqueness(sizes: Int64s, share: float, population: int) -> Finding:
    from reticent.verify.uniqueness import zayatz  # imports every risk measure

    rows = int(sizes.sum())
    alone = float((sizes == 1).sum()) if population <= rows else zayatz(sizes, rows / population)
    measured = alone / max(1, population)
    return Finding(f"population uniqueness = {share:g}", measured <= share * (1 + 1e-9), round(measured, 9), share)


def _check_k_map(data: pa.Table, policy: Policy) -> Finding:
    """Check that every published combination fits k people of the population, by the policy's hierarchies."""
    spec = policy.privacy.k_map
    assert spec is not None  # noqa: S101 - checked by the caller
    names = present_columns(policy.quasi, data)
    people = _read_population(policy, names)
    fields = [Field.from_labels(people, data, policy, name) for name in names]
    fits = match_rows(fields, people.num_rows, data.num_rows).candidate_counts
    first = np.unique(number_rows(data, names)[0], return_index=True)[1]
    least, bad = int(fits.min(initial=spec.k)), int((fits[first] < spec.k).sum())
    where = f"{bad} of {len(first)} classes fit fewer people" if bad else ""
    return Finding(f"k-map = {spec.k}", bad == 0, least, spec.k, where)


def _read_population(policy: Policy, names: list[str]) -> pa.Table:
    spec = policy.privacy.k_map
    assert spec is not None  # noqa: S101 - as above
    try:
        options = pacsv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
        table = pacsv.read_csv(policy.path(spec.file), convert_options=options)
    except (OSError, pa.ArrowException, KeyError):
        raise DataError(
            "privacy.k_map: the population file cannot be read.",
            hint="Give a CSV file with a column for each quasi-identifier.",
        ) from None
    return text_table(table)
