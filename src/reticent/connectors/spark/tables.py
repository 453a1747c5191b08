"""One table, once, on Spark: the release that one machine would make of the same rows.

Guarantee: that of `reticent.connectors.pushdown.tables`; the judge has recomputed it on Spark.
Not covered: a source that changes while it is read (the counts then disagree and nothing is released).
Cost: two passes over the table for the counts and the check, one when the result is written; the driver holds the
    distinct combinations.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`.
Differences from the single machine: see `reticent.connectors.pushdown.tables`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from reticent.connectors.pushdown.tables import METHODS, check_policy, search_counts
from reticent.connectors.pushdown.verifier import verify_rows
from reticent.connectors.spark import veil_tables
from reticent.connectors.spark.rows import SparkRelease, SparkRows
from reticent.policy import Policy
from reticent.publication.gate import require_verification
from reticent.store import Store
from reticent.verify.result import VerificationResult


def anonymize(frame: DataFrame, policy: Policy, *, store: Store | None = None) -> DataFrame:
    """The published rows of a frame under a policy; `release` gives the guarantee and the metrics as well.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    return release(frame, policy, store=store).frame


def release(frame: DataFrame, policy: Policy, *, store: Store | None = None) -> SparkRelease:
    """Searches, applies and checks a release; what comes back is evaluated by Spark when it is written.

    Args:
        frame: the columns of the policy.
        policy: `table: {method: optimal}` (also what `auto` means here), `mondrian`, `local` or `veil`.
        store: keeps the key of the veil.
    """
    check_policy(frame.columns, policy, "Spark", (*METHODS, veil_tables.METHOD))
    rows = SparkRows(frame).without_markers(policy.missing).normalize_persons(policy.person)
    if policy.table.method == veil_tables.METHOD:
        release = veil_tables.veil(rows, policy, store)
        require_verification(verify(release, policy))
        return release
    plan = search_counts(rows, policy)
    release = SparkRelease(
        frame=rows.recode(plan.recoding),
        guarantee=plan.guarantee,
        counts=plan.counts,
        policy_hash=policy.hash,
        metrics=plan.metrics,
        explain=plan.explain,
        method=plan.method,
    )
    require_verification(verify(release, policy))  # a source that changes while it is read is found here, too
    if (verdict := plan.verify_persons(policy)) is not None:
        require_verification(verdict)
    return release


def verify(release: SparkRelease, policy: Policy) -> VerificationResult:
    """Recompute every claim of a release from its published rows alone, counted by Spark."""
    if release.method == veil_tables.METHOD:
        return veil_tables.verify_frame(
            release.frame, policy, release.metadata["veil"], release.guarantee.claims, release.counts
        )
    return verify_rows(SparkRows(release.frame), release.guarantee.claims, release.counts, policy, release.method)
