"""One table, once, on Spark: the release that one machine would make of the same rows.

Guarantee: that of `reticent.connectors.counted.tables`; the judge has recomputed it on Spark.
Not covered: a source that changes while it is read (the counts then disagree and nothing is released).
Cost: two passes over the table for the counts and the check, one when the result is written; the driver holds the
    distinct combinations.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`.
Differences from the single machine: see `reticent.connectors.counted.tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from reticent.audit.verdict import Verdict
from reticent.connectors.counted.judge import judge
from reticent.connectors.counted.tables import METHODS, check_policy, search_counts
from reticent.connectors.spark import veiled
from reticent.connectors.spark.rows import SparkRows
from reticent.errors import StateError
from reticent.policy import Policy
from reticent.publication.gate import refuse_refuted
from reticent.release import Counts, Guarantee
from reticent.store import Store

_DONE = "_SUCCESS"
_MARKS = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
"""Whether a job that has ended leaves that file; a cluster may have switched it off."""


@dataclass(frozen=True, repr=False)
class SparkRelease:
    """Data as a frame, with its guarantee beside it; the fields are those of `reticent.Release`."""

    frame: DataFrame
    guarantee: Guarantee
    counts: Counts
    policy_hash: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kind: str = "table"
    shape: str = "generalised"
    method: str = METHODS[0]

    def __repr__(self) -> str:
        return f"SparkRelease({self.counts}, claims {dict(self.guarantee.claims)})"

    def to_parquet(self, folder: str) -> None:
        """Writes the rows as Parquet; a folder is a release when it holds `_SUCCESS`, which Spark writes last.

        What a driver has left that died before is replaced; a release that stands there stays.

        Args:
            folder: as Spark names it, with or without a scheme.

        Raises:
            StateError: a release stands there.
        """
        if _published(self.frame.sparkSession, folder):
            raise StateError(f"A release stands in {folder}.", hint="Name another folder; nothing was written.")
        self.frame.write.mode("overwrite").option(_MARKS, "true").parquet(folder)


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
    check_policy(frame.columns, policy, "Spark", (*METHODS, veiled.METHOD))
    rows = SparkRows(frame).without_markers(policy.missing).named(policy.person)
    if policy.table.method == veiled.METHOD:
        release = _veiled(rows, policy, store)
        refuse_refuted(verify(release, policy))
        return release
    plan = search_counts(rows, policy)
    release = SparkRelease(
        frame=rows.recoded(plan.recoded),
        guarantee=plan.guarantee,
        counts=plan.counts,
        policy_hash=policy.hash,
        metrics=plan.metrics,
        explain=plan.explain,
        method=plan.method,
    )
    refuse_refuted(verify(release, policy))  # a source that changes while it is read is found here, too
    if (verdict := plan.persons(policy)) is not None:
        refuse_refuted(verdict)
    return release


def verify(release: SparkRelease, policy: Policy) -> Verdict:
    """Recompute every claim of a release from its published rows alone, counted by Spark."""
    if release.method == veiled.METHOD:
        return veiled.judge(release.frame, policy, release.documents["veil"], release.guarantee.claims, release.counts)
    return judge(SparkRows(release.frame), release.guarantee.claims, release.counts, policy, release.method)


def _veiled(rows: SparkRows, policy: Policy, store: Store | None) -> SparkRelease:
    veil = veiled.veil(rows, policy, store)
    return SparkRelease(
        frame=veil.frame,
        guarantee=veil.guarantee,
        counts=veil.counts,
        policy_hash=policy.hash,
        documents={"veil": veil.document},
        shape="veil",
        method=veiled.METHOD,
    )


def _published(spark: SparkSession, folder: str) -> bool:
    """Whether a job that wrote there has ended; asked of the file system of the folder, whichever it is."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001 - no public name
    place = hadoop.Path(folder, _DONE)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001
