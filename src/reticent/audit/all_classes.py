"""What all classes must keep together, and beside a population: average risk, population uniqueness, k-map. Shares no code with engines.

Guarantee: each demand of the policy, and each claim of the release where it is stricter, is recomputed from the published rows.
Not covered: that the population of k-map is the real one; persons with several records, who are counted as records here.
Cost: for k-map, the pairs of classes and people of the population that fit (`meeting`).
Reference: see `reticent.policy.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from reticent.arrays import Int64s
from reticent.audit.groups import numbered, present
from reticent.audit.labels.meeting import Field, meet
from reticent.audit.published import text_table
from reticent.audit.requirements import UnreadableClaimError
from reticent.audit.verdict import Finding
from reticent.errors import DataError
from reticent.policy import Policy

OVERALL = ("average_risk", "population_uniqueness", "k_map")


def check_overall(data: pa.Table, rows: Int64s, size: int, claims: Mapping[str, Any], policy: Policy) -> list[Finding]:
    """One finding for each demand."""
    sizes = np.bincount(rows, minlength=size).astype(np.int64)
    privacy = policy.privacy
    findings = []
    risks = [claims.get("average_risk"), privacy.average_risk]
    if any(risk is not None for risk in risks):
        findings.append(_average(sizes, min(_number(risk) for risk in risks if risk is not None)))
    uniqueness = privacy.population_uniqueness
    asked = claims.get("population_uniqueness")
    if uniqueness is not None:
        findings.append(_uniques(sizes, uniqueness.share, uniqueness.population))
    elif isinstance(asked, dict):
        findings.append(_uniques(sizes, _number(asked.get("share")), int(_number(asked.get("population")))))
    if privacy.k_map is not None:
        findings.append(_k_map(data, policy))
    elif "k_map" in claims:
        findings.append(Finding("k-map", holds=False, where="the policy names no population"))
    return findings


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableClaimError
    return float(value)


def _average(sizes: Int64s, threshold: float) -> Finding:
    # Over the records: one in its class each. Not the engines' way, which counts classes.
    risks = np.repeat(1.0 / sizes, sizes)
    mean = float(risks.mean()) if len(risks) else 0.0
    return Finding(f"average risk = {threshold:g}", mean <= threshold * (1 + 1e-12), round(mean, 9), threshold)


def _uniques(sizes: Int64s, share: float, population: int) -> Finding:
    from reticent.audit.risk.uniqueness import zayatz  # brings every measure of risk with it

    rows = int(sizes.sum())
    alone = float((sizes == 1).sum()) if population <= rows else zayatz(sizes, rows / population)
    measured = alone / max(1, population)
    return Finding(f"population uniqueness = {share:g}", measured <= share * (1 + 1e-9), round(measured, 9), share)


def _k_map(data: pa.Table, policy: Policy) -> Finding:
    """Whether every published combination fits k people; person by person, each label by the policy's hierarchy."""
    spec = policy.privacy.k_map
    assert spec is not None  # noqa: S101 - the caller looked
    names = present(policy.quasi, data)
    people = _population(policy, names)
    fields = [Field.covering(people, data, policy, name) for name in names]
    fits = meet(fields, people.num_rows, data.num_rows).people
    first = np.unique(numbered(data, names)[0], return_index=True)[1]
    least, bad = int(fits.min(initial=spec.k)), int((fits[first] < spec.k).sum())
    where = f"{bad} of {len(first)} classes fit fewer" if bad else ""
    return Finding(f"k-map = {spec.k}", bad == 0, least, spec.k, where)


def _population(policy: Policy, names: list[str]) -> pa.Table:
    spec = policy.privacy.k_map
    assert spec is not None  # noqa: S101 - as above
    try:
        options = pacsv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
        table = pacsv.read_csv(policy.path(spec.file), convert_options=options)
    except (OSError, pa.ArrowException, KeyError):
        raise DataError(
            "privacy.k_map: the population cannot be read.",
            hint="Give a CSV file with a column for each quasi-identifier.",
        ) from None
    return text_table(table)
