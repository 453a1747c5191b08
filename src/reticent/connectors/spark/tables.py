"""Anonymize one table on Spark, once, with the same release as on one machine.

Guarantee: as in `reticent.connectors.pushdown.tables`; the verifier recomputes it on Spark before publication.
Not covered: a source that changes while it is read (the counts then disagree and nothing is released).
Cost: two passes over the table for the counts and the check, one to write the result; the distinct combinations in the
    driver's memory.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`.
Differences from the single machine: see `reticent.connectors.pushdown.tables`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from reticent.connectors.pushdown.tables import check_policy, search_counts
from reticent.connectors.pushdown.verifier import verify_rows
from reticent.connectors.spark.rows import SparkRelease, SparkRows
from reticent.policy import Policy
from reticent.publication.gate import require_verification
from reticent.verify.result import VerificationResult


def anonymize(frame: DataFrame, policy: Policy) -> DataFrame:
    """Return the published rows of a frame under a policy; `release` also returns the guarantee and the metrics.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    return release(frame, policy).frame


def release(frame: DataFrame, policy: Policy) -> SparkRelease:
    """Search, apply and verify a release; Spark evaluates the returned frame when it is written.

    Args:
        frame: a frame with the columns of the policy.
        policy: method `optimal` (also used for `auto`), `mondrian` or `local`.
    """
    check_policy(frame.columns, policy, "Spark")
    rows = SparkRows(frame).without_markers(policy.missing).normalize_persons(policy.person)
    plan = search_counts(rows, policy)
    release = SparkRelease(
        frame=rows.recode(plan.recoding),
        guarantee=plan.guarantee,
        records=plan.counts,
        policy_hash=policy.hash,
        metrics=plan.metrics,
        explain=plan.explain,
        method=plan.method,
    )
    require_verification(verify(release, policy))  # also detects a source that changes during reading
    if (result := plan.verify_persons(policy)) is not None:
        require_verification(result)
    return release


def verify(release: SparkRelease, policy: Policy) -> VerificationResult:
    """Recompute every claim of a release from its published rows alone, counted by Spark."""
    return verify_rows(SparkRows(release.frame), release.guarantee.claims, release.records, policy, release.method)
