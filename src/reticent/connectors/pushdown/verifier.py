"""Verify rows that are stored in Spark or DuckDB: count them there, and recompute every claim from the counts.

Guarantee: the findings, for the rows as counted and nothing else.
Not covered: as for `reticent.verify.verify`.
Cost: one pass over the published rows in place; the published combinations in memory.
Reference: the papers of the models, see docs/models.md.
Differences from the verifier of one machine: rows are counted elsewhere; the checks are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reticent.connectors.pushdown.rows import Rows, split_counts
from reticent.policy import Policy
from reticent.release import RecordCounts
from reticent.verify.generalized import (
    check_counts,
    check_sensitive,
    record_requirements,
    suppressed_share,
    unchecked_claims,
)
from reticent.verify.groups import codes, number_rows
from reticent.verify.labels.validity import check_labels
from reticent.verify.published import text_table
from reticent.verify.requirements import check_size, person_requirements, policy_requirements, requirements
from reticent.verify.result import VerificationResult, none_of


def verify_rows(
    release: Rows, claims: Mapping[str, Any], stated_counts: RecordCounts, policy: Policy, method: str
) -> VerificationResult:
    """Recompute every claim of a release from its published rows alone; the method decides which labels are valid."""
    names = release.columns
    quasi = [name for name in policy.quasi if name in names]
    sensitive = [name for name in policy.sensitive if name in names]
    published, times = split_counts(release.count_combinations([*quasi, *sensitive]), [*quasi, *sensitive])
    data, counts = text_table(published), times.astype(np.int64)
    del published
    several = any(requirement.model != "k" for requirement in person_requirements(claims)) and policy.person is not None
    rules = record_requirements(requirements(claims) + policy_requirements(policy, persons=several))
    rows, size = number_rows(data, quasi)
    unexpected = [name for name in names if name not in policy.released]
    findings = [none_of("only columns that the policy releases are published", len(unexpected))]
    findings += [none_of("every quasi-identifier is published", len(policy.quasi) - len(quasi))]
    findings += [check_labels(codes(data[name])[1], policy, name, method) for name in quasi]
    sizes = np.bincount(rows, weights=counts, minlength=size).astype(np.int64)
    findings += [check_size(sizes, requirement, "") for requirement in rules if requirement.model == "k"]
    findings += check_sensitive(data, rows, size, rules, policy, suppressed_share(vars(stated_counts)), counts)
    findings += check_counts(vars(stated_counts), int(counts.sum()), policy.privacy.suppression)
    return VerificationResult(tuple(findings), (), unchecked_claims(claims))
