"""The judge on Spark: Spark counts the published rows, the auditor recomputes every claim from the counts.

Guarantee: what the findings say, about the frame as Spark reads it and nothing else.
Not covered: as for `reticent.audit.verify`.
Cost: one pass over the published rows on the cluster; the driver holds the published combinations.
Reference: the models' own papers, see `reticent.policy.models`.
Differences from the judge of one machine: rows are counted by Spark instead of here; the checks are the auditor's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.generalised import check_columns, check_counts, hidden, seen, suppressed_share, unchecked
from reticent.audit.groups import Groups, codes, numbered
from reticent.audit.legal import illegal
from reticent.audit.published import text_table
from reticent.audit.requirements import check_l, check_size, check_t, demanded, of_persons, requirements
from reticent.audit.verdict import Finding, Verdict, none_of
from reticent.connectors.spark.collapse import collapse

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.audit.requirements import Requirement
    from reticent.connectors.spark.tables import SparkRelease
    from reticent.policy import Policy


def verify(release: SparkRelease, policy: Policy) -> Verdict:
    """Recompute every claim of a release from its published rows alone."""
    names = release.frame.columns
    quasi = [name for name in policy.quasi if name in names]
    shown = [name for name in policy.sensitive if name in names]
    published, times = collapse(release.frame, [*quasi, *shown])
    data, counts = text_table(published), times.astype(np.int64)
    claims = release.guarantee.claims
    several = any(requirement.model != "k" for requirement in of_persons(claims)) and policy.person is not None
    rules = seen(requirements(claims) + demanded(policy, persons=several))
    rows, size = numbered(data, quasi)
    findings = [check_columns(data, policy.released, policy)]
    findings += [none_of("every quasi-identifier is published", len(policy.quasi) - len(quasi))]
    findings += [_legal(data, name, policy) for name in quasi]
    sizes = np.bincount(rows, weights=counts, minlength=size).astype(np.int64)
    findings += [check_size(sizes, requirement, "") for requirement in rules if requirement.model == "k"]
    for name in policy.sensitive:
        deep = [requirement for requirement in rules if requirement.model != "k"]
        if name in shown:
            groups = _histograms(rows, size, data[name], counts)
            findings += [_deep(groups, requirement, release, policy, name) for requirement in deep]
        else:
            findings += [Finding(str(r), holds=False, where=f"column '{name}' is not published") for r in deep]
    findings += check_counts(vars(release.counts), int(counts.sum()), policy.privacy.suppression)
    return Verdict(tuple(findings), (), unchecked(claims) + hidden(claims))


def _legal(data: pa.Table, name: str, policy: Policy) -> Finding:
    unknown = illegal(codes(data[name])[1], policy, name, "optimal")
    return none_of("published values are nodes of the hierarchy", unknown, f"column '{name}'")


def _histograms(
    rows: npt.NDArray[np.int64], size: int, column: pa.ChunkedArray, counts: npt.NDArray[np.int64]
) -> Groups:
    """The sensitive values within groups, each combination as often as Spark counted it."""
    code, values = codes(column)
    width = max(1, len(values))
    pairs, inverse = np.unique(rows * width + code, return_inverse=True)
    sums = np.bincount(inverse.reshape(-1), weights=counts).astype(np.int64)
    return Groups(pairs // width, pairs % width, sums, size, values)


def _deep(groups: Groups, requirement: Requirement, release: SparkRelease, policy: Policy, name: str) -> Finding:
    if requirement.model == "l":
        return check_l(groups, requirement, f"column '{name}'")
    counts = release.counts
    slack = suppressed_share(counts.rows_in, counts.suppressed)
    return check_t(groups, requirement, groups.totals(), policy, name, slack=slack)
