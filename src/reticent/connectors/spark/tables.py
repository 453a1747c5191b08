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
from reticent.engine.table.encoded_table import EncodedTable, claims
from reticent.engine.table.generalised import AGAINST, NOT_COVERED
from reticent.engine.table.optimal import search
from reticent.errors import DataError, PolicyError
from reticent.publication.gate import refuse_refuted
from reticent.release import Counts, Guarantee
from reticent.utility.metrics import measure
from reticent.utility.recoding import Recoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import DataFrame

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
    encoded = EncodedTable.from_table(policy, distinct, times)
    node = search(encoded, weights=encoded.weights)
    levels = [int(level) for level in node["levels"]]
    lost = np.asarray(encoded.collapsed.classes(encoded.model, levels) < 0)
    release = SparkRelease(
        frame=_apply(frame, encoded, levels, lost),
        guarantee=Guarantee(claims(policy), AGAINST, NOT_COVERED),
        counts=_counts(times, lost),
        policy_hash=policy.hash,
        metrics=_metrics(encoded, levels, lost, times),
        explain=_story(encoded, node, levels, times),
    )
    refuse_refuted(verify(release, policy))  # a source that changes while it is read is found here, too
    return release


def _check(frame: DataFrame, policy: Policy) -> None:
    if policy.table.method != METHOD:
        raise PolicyError(f"Spark releases tables by method {METHOD} only.", hint=f"Write table: {{method: {METHOD}}}.")
    if len(set(frame.columns)) < len(frame.columns):
        raise DataError("The data has two columns of the same name.", hint="Rename one of them.")
    policy.check_columns(frame.columns)


def _apply(frame: DataFrame, encoded: EncodedTable, levels: list[int], lost: npt.NDArray[np.bool_]) -> DataFrame:
    """Recodes every quasi-identifier by a join with its ladder, then leaves the violating classes out."""
    from pyspark.sql import functions as F  # noqa: N812

    policy, spark = encoded.policy, frame.sparkSession
    shown = [name for name in policy.columns if name in policy.released]
    out = frame.select(*[column(name) for name in shown])
    for name, level in zip(encoded.quasi, levels, strict=True):
        ladder = encoded.ladders[name]
        if level == ladder.height:
            out = out.withColumn(name, F.lit(ladder.labels[-1][0].as_py()))
        elif level:
            pairs = spark.createDataFrame(_pairs(ladder, level))
            joined = out.join(F.broadcast(pairs), F.col(column(name)).eqNullSafe(F.col(_LEAF)), "inner")
            out = joined.withColumn(name, F.col(_LABEL)).drop(_LEAF, _LABEL)
    if lost.any():
        violating = spark.createDataFrame(_classes(encoded, levels, lost))
        same = [F.col(column(name)).eqNullSafe(F.col(f"__{i}")) for i, name in enumerate(encoded.quasi)]
        condition = same[0]
        for more in same[1:]:
            condition &= more
        out = out.join(violating, condition, "left_anti")
    # The order of the input may follow something a reader knows.
    return out.select(*[column(name) for name in shown]).orderBy(*[column(name) for name in shown])


def _pairs(ladder: Ladder, level: int) -> pa.Table:
    labels = ladder.labels[level].take(pa.array(ladder.tables[level]))
    return pa.table({_LEAF: ladder.labels[0], _LABEL: labels})


def _classes(encoded: EncodedTable, levels: list[int], lost: npt.NDArray[np.bool_]) -> pa.Table:
    """The published quasi-identifiers of the classes that violate the policy, each once."""
    columns = {}
    for i, (name, level) in enumerate(zip(encoded.quasi, levels, strict=True)):
        ladder = encoded.ladders[name]
        columns[f"__{i}"] = ladder.labels[level].take(pa.array(ladder.tables[level][encoded.codes(name)[lost]]))
    table = pa.table(columns)
    return table.group_by(table.column_names).aggregate([])


def _counts(times: npt.NDArray[np.uint32], lost: npt.NDArray[np.bool_]) -> Counts:
    rows, gone = int(times.sum(dtype=np.int64)), int(times[lost].sum(dtype=np.int64))
    return Counts(rows, rows - gone, 0, gone)


def _metrics(
    encoded: EncodedTable, levels: list[int], lost: npt.NDArray[np.bool_], times: npt.NDArray[np.uint32]
) -> dict[str, float]:
    recodings = {
        name: Recoding.from_levels(encoded.codes(name), encoded.ladders[name], level)
        for name, level in zip(encoded.quasi, levels, strict=True)
    }
    weights = dict(zip(encoded.quasi, encoded.weights, strict=True))
    return measure(recodings, suppressed=lost, counts=times.astype(np.int64), weights=weights).to_dict()


def _story(
    encoded: EncodedTable, node: dict[str, Any], levels: list[int], times: npt.NDArray[np.uint32]
) -> dict[str, Any]:
    account: dict[str, Any] = {
        "attributes": {
            name: {"level": level, "height": encoded.ladders[name].height}
            for name, level in zip(encoded.quasi, levels, strict=True)
        },
        "loss": encoded.policy.table.loss,
        "score": node["score"],
        "suppressed": int(node["suppressed"]),
        "classes": int(node["classes"]),
        "combinations": len(encoded.collapsed),
        "nodes": {"lattice": encoded.collapsed.nodes, "checked": int(node["checked"])},
        "optimal": bool(node["complete"]),
        "bound": node["bound"],
    }
    if encoded.policy.privacy.t is not None:
        account["reference"] = {name: _reference(encoded, name, times) for name in encoded.policy.sensitive}
    return account


def _reference(encoded: EncodedTable, name: str, times: npt.NDArray[np.uint32]) -> list[list[Any]]:
    """The distribution the classes are compared with: that of the whole input."""
    words = encoded.columns.dictionaries[name]
    counts = np.bincount(encoded.codes(name), weights=times, minlength=len(words)).astype(np.int64)
    values = words.values.cast(pa.string()).to_pylist()
    return sorted(([value, int(n)] for value, n in zip(values, counts, strict=True)), key=lambda pair: pair[0] or "")
