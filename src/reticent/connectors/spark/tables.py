"""One table, once, on Spark: the release that one machine would make of the same rows.

Spark collapses the table to distinct combinations with sensitive histograms, which are few whatever the number of rows;
the search of `reticent.engine.table.optimal` runs on these counts; Spark applies the levels it found, leaves out the
classes that violate the policy, and counts the result again for the judge.

Guarantee: that of `reticent.engine.table.optimal`, for the rows that the frame had; the judge has recomputed it on Spark.
Not covered: a source that changes while it is read (the counts then disagree and nothing is released); more than 2^30
    rows; methods other than `optimal`.
Cost: two passes over the table for the counts and the check, one when the result is written; the driver holds the
    distinct combinations.
Reference: see `reticent.engine.table.optimal`.
Differences from the single machine: the rows come sorted by their published values instead of shuffled, which tells as
    little of the order of the input and needs no randomness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.connectors.spark.collapse import collapse, column
from reticent.connectors.spark.judge import verify
from reticent.engine.table.generalised import AGAINST, NOT_COVERED
from reticent.engine.table.optimal import search
from reticent.engine.table.subject import claims, subject
from reticent.errors import DataError, PolicyError
from reticent.publication.gate import refuse_refuted
from reticent.release import Counts, Guarantee
from reticent.utility.metrics import measure
from reticent.utility.recoding import Recoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import DataFrame

    from reticent.engine.table.subject import Subject
    from reticent.policy import Policy
    from reticent.policy.hierarchy import Ladder

METHOD = "optimal"
_LEAF, _LABEL = "__leaf", "__label"


@dataclass(frozen=True, repr=False)
class SparkRelease:
    """Data as a frame, with its guarantee beside it; the fields are those of `reticent.Release`."""

    frame: DataFrame
    guarantee: Guarantee
    counts: Counts
    policy_hash: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "table"
    shape: str = "generalised"
    method: str = METHOD

    def __repr__(self) -> str:
        return f"SparkRelease({self.counts}, claims {dict(self.guarantee.claims)})"


def anonymize(frame: DataFrame, policy: Policy) -> DataFrame:
    """The generalised rows of a frame under a policy; `release` gives the guarantee and the metrics as well.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    return release(frame, policy).frame


def release(frame: DataFrame, policy: Policy) -> SparkRelease:
    """Searches, applies and checks a release; what comes back is evaluated by Spark when it is written."""
    _check(frame, policy)
    guarded = policy.sensitive if policy.privacy.l is not None or policy.privacy.t is not None else ()
    distinct, times = collapse(frame, [*policy.quasi, *guarded])
    if not len(times):
        raise DataError("The table has no rows.", hint="Give a frame with at least one row.")
    given = subject(policy, distinct, times)
    found = search(given, weights=given.weights)
    levels = [int(level) for level in found["levels"]]
    lost = np.asarray(given.collapsed.classes(given.model, levels) < 0)
    made = SparkRelease(
        frame=_apply(frame, given, levels, lost),
        guarantee=Guarantee(claims(policy), AGAINST, NOT_COVERED),
        counts=_counts(times, lost),
        policy_hash=policy.hash,
        metrics=_metrics(given, levels, lost, times),
        explain=_story(given, found, levels, times),
    )
    refuse_refuted(verify(made, policy))  # a source that changes while it is read is found here, too
    return made


def _check(frame: DataFrame, policy: Policy) -> None:
    if policy.table.method != METHOD:
        raise PolicyError(f"Spark releases tables by method {METHOD} only.", hint=f"Write table: {{method: {METHOD}}}.")
    if len(set(frame.columns)) < len(frame.columns):
        raise DataError("The data has two columns of the same name.", hint="Rename one of them.")
    policy.check_columns(frame.columns)


def _apply(frame: DataFrame, given: Subject, levels: list[int], lost: npt.NDArray[np.bool_]) -> DataFrame:
    """Recodes every quasi-identifier by a join with its ladder, then leaves the violating classes out."""
    from pyspark.sql import functions as F  # noqa: N812

    policy, spark = given.policy, frame.sparkSession
    shown = [name for name in policy.columns if name in policy.released]
    out = frame.select(*[column(name) for name in shown])
    for name, level in zip(given.quasi, levels, strict=True):
        ladder = given.ladders[name]
        if level == ladder.height:
            out = out.withColumn(name, F.lit(ladder.labels[-1][0].as_py()))
        elif level:
            pairs = spark.createDataFrame(_pairs(ladder, level))
            joined = out.join(F.broadcast(pairs), F.col(column(name)).eqNullSafe(F.col(_LEAF)), "inner")
            out = joined.withColumn(name, F.col(_LABEL)).drop(_LEAF, _LABEL)
    if lost.any():
        violating = spark.createDataFrame(_classes(given, levels, lost))
        same = [F.col(column(name)).eqNullSafe(F.col(f"__{i}")) for i, name in enumerate(given.quasi)]
        condition = same[0]
        for more in same[1:]:
            condition &= more
        out = out.join(violating, condition, "left_anti")
    # The order of the input may follow something a reader knows.
    return out.select(*[column(name) for name in shown]).orderBy(*[column(name) for name in shown])


def _pairs(ladder: Ladder, level: int) -> pa.Table:
    labels = ladder.labels[level].take(pa.array(ladder.tables[level]))
    return pa.table({_LEAF: ladder.labels[0], _LABEL: labels})


def _classes(given: Subject, levels: list[int], lost: npt.NDArray[np.bool_]) -> pa.Table:
    """The published quasi-identifiers of the classes that violate the policy, each once."""
    columns = {}
    for i, (name, level) in enumerate(zip(given.quasi, levels, strict=True)):
        ladder = given.ladders[name]
        columns[f"__{i}"] = ladder.labels[level].take(pa.array(ladder.tables[level][given.codes(name)[lost]]))
    table = pa.table(columns)
    return table.group_by(table.column_names).aggregate([])


def _counts(times: npt.NDArray[np.uint32], lost: npt.NDArray[np.bool_]) -> Counts:
    rows, gone = int(times.sum(dtype=np.int64)), int(times[lost].sum(dtype=np.int64))
    return Counts(rows, rows - gone, 0, gone)


def _metrics(
    given: Subject, levels: list[int], lost: npt.NDArray[np.bool_], times: npt.NDArray[np.uint32]
) -> dict[str, float]:
    recodings = {
        name: Recoding.from_levels(given.codes(name), given.ladders[name], level)
        for name, level in zip(given.quasi, levels, strict=True)
    }
    weights = dict(zip(given.quasi, given.weights, strict=True))
    return measure(recodings, suppressed=lost, counts=times.astype(np.int64), weights=weights).to_dict()


def _story(given: Subject, found: dict[str, Any], levels: list[int], times: npt.NDArray[np.uint32]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "attributes": {
            name: {"level": level, "height": given.ladders[name].height}
            for name, level in zip(given.quasi, levels, strict=True)
        },
        "loss": given.policy.table.loss,
        "score": found["score"],
        "suppressed": int(found["suppressed"]),
        "classes": int(found["classes"]),
        "combinations": len(given.collapsed),
        "nodes": {"lattice": given.collapsed.nodes, "checked": int(found["checked"])},
        "optimal": bool(found["complete"]),
        "bound": found["bound"],
    }
    if given.policy.privacy.t is not None:
        said["reference"] = {name: _reference(given, name, times) for name in given.policy.sensitive}
    return said


def _reference(given: Subject, name: str, times: npt.NDArray[np.uint32]) -> list[list[Any]]:
    """The distribution the classes are compared with: that of the whole input."""
    words = given.encoded.dictionaries[name]
    counts = np.bincount(given.codes(name), weights=times, minlength=len(words)).astype(np.int64)
    values = words.values.cast(pa.string()).to_pylist()
    return sorted(([value, int(n)] for value, n in zip(values, counts, strict=True)), key=lambda pair: pair[0] or "")
