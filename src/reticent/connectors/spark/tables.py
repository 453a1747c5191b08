"""One table, once, on Spark: the release that one machine would make of the same rows.

Spark collapses the table to distinct combinations with sensitive histograms, which are few whatever the number of rows;
the search of `reticent.engine.table.optimal` runs on these counts; Spark applies the levels it found, leaves out the
classes that violate the policy, and counts the result again for the judge.

Guarantee: that of `reticent.engine.table.optimal`, for the rows that the frame had; the judge has recomputed it on Spark.
Not covered: a source that changes while it is read (the counts then disagree and nothing is released); more than 2^30
    rows; methods other than `optimal`, which is also what `auto` means here.
Cost: two passes over the table for the counts and the check, one when the result is written; the driver holds the
    distinct combinations.
Reference: see `reticent.engine.table.optimal`.
Differences from the single machine: the rows come sorted by their published values instead of shuffled, which tells as
    little of the order of the input and needs no randomness.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.audit import persons
from reticent.audit.published import Published, text_table
from reticent.connectors.spark.collapse import collapse, column
from reticent.connectors.spark.judge import verify
from reticent.engine.identifiers import refuse_overall
from reticent.engine.table.encoded_table import EncodedTable, claims, limited
from reticent.engine.table.generalised import AGAINST, not_covered
from reticent.engine.table.levels import Levels
from reticent.engine.table.optimal import full_domain, search
from reticent.engine.table.people import settled
from reticent.errors import DataError, PolicyError
from reticent.publication.gate import refuse_refuted
from reticent.release import Counts, Guarantee
from reticent.utility.metrics import measure
from reticent.utility.recoding import Recoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import DataFrame

    from reticent.audit.verdict import Verdict
    from reticent.engine.table.generalised import Outcome
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
    frame = _without_markers(frame, policy.missing)
    guarded = policy.sensitive if policy.privacy.l is not None or policy.privacy.t is not None else ()
    people = [policy.person] if policy.person is not None and _several(frame, policy.person) else []
    distinct, times = collapse(frame, [*policy.quasi, *guarded, *people])
    if not len(times):
        raise DataError("The table has no rows.", hint="Give a frame with at least one row.")
    if people:  # a person's records count one by one; there are about as many as combinations
        distinct = distinct.take(pa.array(np.repeat(np.arange(len(times)), times)))
        times = np.ones(distinct.num_rows, dtype=np.uint32)
    encoded = EncodedTable.from_table(policy, distinct, None if people else times)
    encoded = replace(encoded, watch=limited(encoded.watch, policy))
    outcome = settled(encoded, _found)
    levels, lost = [int(a.level) for a in outcome.attributes.values() if isinstance(a, Levels)], outcome.suppressed
    release = SparkRelease(
        frame=_apply(frame, encoded, levels, lost, distinct if people else None),
        guarantee=Guarantee(claims(policy, several=bool(people)), AGAINST, not_covered(policy)),
        counts=_counts(times, lost),
        policy_hash=policy.hash,
        metrics=_metrics(encoded, levels, lost, times),
        explain=_story(encoded, outcome, levels, lost, times),
    )
    refuse_refuted(verify(release, policy))  # a source that changes while it is read is found here, too
    if people:
        refuse_refuted(_persons(release, policy, outcome, distinct))
    return release


def _without_markers(frame: DataFrame, words: tuple[str, ...]) -> DataFrame:
    """The frame with nothing where a cell is a marker that the policy declares."""
    from pyspark.sql import functions as F  # noqa: N812

    if not words:
        return frame
    marked = {name: F.col(column(name)).cast("string").isin(*words) for name in frame.columns}
    return frame.select(*[F.when(~gone | gone.isNull(), F.col(column(n))).alias(n) for n, gone in marked.items()])


def _found(encoded: EncodedTable) -> Outcome:
    return full_domain(encoded, search(encoded, weights=encoded.weights), METHOD)


def _several(frame: DataFrame, person: str) -> bool:
    """Whether somebody has several records; records without a person are refused."""
    from pyspark.sql import functions as F  # noqa: N812

    owner = F.col(column(person))
    nobody = frame.filter(owner.isNull()).count()
    if nobody:
        raise DataError(
            f"Column '{person}': {nobody:,} records have no person.",
            hint="Fill the column, or leave those records out.",
        )
    return bool(frame.groupBy(owner).count().filter(F.col("count") > 1).limit(1).count())


def _persons(release: SparkRelease, policy: Policy, outcome: Outcome, distinct: pa.Table) -> Verdict:
    """The judge's word on the claims of persons, on the counts that Spark has brought."""
    # The published rows stand in the order of their cells; these combinations in none, so that the judge sees no order of the input.
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~outcome.suppressed))
    labels = {name: outcome.attributes[name].labels(rows) for name in policy.quasi}
    values = {n: distinct.column(n).take(pa.array(rows)) for n in policy.sensitive if n in distinct.column_names}
    published = Published(
        name="",
        shape=release.shape,
        kind=release.kind,
        method=METHOD,
        tables={"data": text_table(pa.table(labels | values))},
        claims=release.guarantee.claims,
        counts=vars(release.counts),
        explain=release.explain,
    )
    return persons.judge(published, policy, persons.Input(distinct, rows))


def _check(frame: DataFrame, policy: Policy) -> None:
    if policy.table.method not in ("auto", METHOD):
        raise PolicyError(f"Spark releases tables by method {METHOD} only.", hint=f"Write table: {{method: {METHOD}}}.")
    refuse_overall(policy)
    if len(set(frame.columns)) < len(frame.columns):
        raise DataError("The data has two columns of the same name.", hint="Rename one of them.")
    if policy.persons is not None and policy.persons.records != "all":
        raise PolicyError(
            "Spark releases all records of a person.", hint="Choose one per person in the frame, or write records: all."
        )
    policy.check_columns(frame.columns)


def _apply(
    frame: DataFrame,
    encoded: EncodedTable,
    levels: list[int],
    lost: npt.NDArray[np.bool_],
    people: pa.Table | None,
) -> DataFrame:
    """Recodes every quasi-identifier by a join with its ladder, then leaves the violating classes out."""
    from pyspark.sql import functions as F  # noqa: N812

    policy, spark = encoded.policy, frame.sparkSession
    shown = [name for name in policy.columns if name in policy.released]
    owner = [policy.person] if people is not None and policy.person is not None else []
    out = frame.select(*[column(name) for name in [*shown, *owner]])
    for name, level in zip(encoded.quasi, levels, strict=True):
        ladder = encoded.ladders[name]
        if level == ladder.height:
            out = out.withColumn(name, F.lit(ladder.labels[-1][0].as_py()))
        elif level:
            pairs = spark.createDataFrame(_pairs(ladder, level))
            joined = out.join(F.broadcast(pairs), F.col(column(name)).eqNullSafe(F.col(_LEAF)), "inner")
            out = joined.withColumn(name, F.col(_LABEL)).drop(_LEAF, _LABEL)
    if lost.any():
        violating = spark.createDataFrame(_classes(encoded, levels, lost, people))
        keys = [*encoded.quasi, *owner]
        same = [F.col(column(name)).eqNullSafe(F.col(f"__{i}")) for i, name in enumerate(keys)]
        condition = same[0]
        for more in same[1:]:
            condition &= more
        out = out.join(violating, condition, "left_anti")
    # The order of the input may follow something a reader knows.
    return out.select(*[column(name) for name in shown]).orderBy(*[column(name) for name in shown])


def _pairs(ladder: Ladder, level: int) -> pa.Table:
    labels = ladder.labels[level].take(pa.array(ladder.tables[level]))
    return pa.table({_LEAF: ladder.labels[0], _LABEL: labels})


def _classes(
    encoded: EncodedTable, levels: list[int], lost: npt.NDArray[np.bool_], people: pa.Table | None
) -> pa.Table:
    """The published quasi-identifiers of the classes that violate the policy, each once, or of the persons in them."""
    columns = {}
    for i, (name, level) in enumerate(zip(encoded.quasi, levels, strict=True)):
        ladder = encoded.ladders[name]
        columns[f"__{i}"] = ladder.labels[level].take(pa.array(ladder.tables[level][encoded.codes(name)[lost]]))
    if people is not None and encoded.policy.person is not None:
        columns[f"__{len(levels)}"] = people.column(encoded.policy.person).filter(pa.array(lost))
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
    encoded: EncodedTable,
    outcome: Outcome,
    levels: list[int],
    lost: npt.NDArray[np.bool_],
    times: npt.NDArray[np.uint32],
) -> dict[str, Any]:
    attributes = {
        name: {"level": level, "height": encoded.ladders[name].height}
        for name, level in zip(encoded.quasi, levels, strict=True)
    }
    return {
        "attributes": attributes,
        "suppressed": int(times[lost].sum(dtype=np.int64)),
        "combinations": len(encoded.collapsed),
        **outcome.explain,
    }
