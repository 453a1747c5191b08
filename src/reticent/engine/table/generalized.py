"""Turn the outcome of a search into a release: publish the generalized values and report the loss per attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Bools, Int64s, UInt32s
from reticent.engine.base import claims
from reticent.engine.identifiers import policy_exclusions
from reticent.engine.rng import Rng
from reticent.engine.table.cuts import Cuts
from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.levels import Levels
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, RECORDS_IN_CLASS, exclusions
from reticent.utility.measures import Balance
from reticent.utility.metrics import Metrics, measure


@dataclass(frozen=True, repr=False)
class RowParts:
    """Parts of counted rows: the row of each part, and the number of its records."""

    rows: UInt32s
    times: UInt32s


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of a search.

    Attributes:
        method: the name of the search.
        attributes: how each quasi-identifier is published.
        suppressed: which rows are suppressed.
        explain: figures about the search.
        row_parts: the parts that `attributes` and `suppressed` refer to if counted rows were split; else None.
    """

    method: str
    attributes: dict[str, Levels | Cuts]
    suppressed: Bools
    explain: dict[str, Any] = field(default_factory=dict)
    row_parts: RowParts | None = None


def generalization_exclusions(policy: Policy) -> tuple[str, ...]:
    """Return what the guarantee of a generalized release does not cover under this policy."""
    unknown = () if policy.person is not None else (RECORDS_IN_CLASS,)
    return exclusions(*unknown, persons=policy.person is not None) + policy_exclusions(policy)


def publish(
    encoded: EncodedTable, table: pa.Table, outcome: Outcome, rng: Rng, metrics: Metrics | None = None
) -> tuple[Release, Int64s]:
    """Return the release, in random row order, and the source row of each of its rows.

    The metrics are measured here unless they are given.
    """
    policy = encoded.policy
    rows = np.flatnonzero(~outcome.suppressed)
    # The input may be sorted by something that an attacker knows.
    shuffled = rows[_core.random.permutation(len(rows), key=rng.key("order"))]
    metrics = metrics or measure_outcome(encoded, outcome)
    explain = explain_outcome(encoded, outcome, metrics)
    release = Release(
        kind="table",
        shape="generalized",
        method=outcome.method,
        tables={"data": _data_table(encoded, table, outcome, shuffled)},
        guarantee=Guarantee(
            claims(policy, several=encoded.people is not None),
            AGAINST["generalized"],
            generalization_exclusions(policy),
        ),
        records=RecordCounts(encoded.rows, len(rows), 0, encoded.rows - len(rows)),
        policy_hash=policy.hash,
        metrics=metrics.to_dict(),
        explain=explain,
        seeded=rng.seeded,
    )
    return release, shuffled


def _data_table(encoded: EncodedTable, table: pa.Table, outcome: Outcome, shuffled: Int64s) -> pa.Table:
    rows = pa.array(shuffled)
    columns = {}
    for name in encoded.policy.columns:
        if name in outcome.attributes:
            columns[name] = outcome.attributes[name].labels(shuffled)
        elif name in encoded.policy.sensitive:
            columns[name] = encoded.columns.dictionaries[name].decode(encoded.codes(name)[shuffled])
        elif name in encoded.policy.plain:
            columns[name] = table.column(name).take(rows)
    return pa.table(columns)


def measure_outcome(encoded: EncodedTable, outcome: Outcome) -> Metrics:
    """Measure an outcome, on distinct combinations where all rows of a combination are published alike."""
    weights = dict(zip(encoded.quasi, encoded.weights, strict=True))
    if all(attribute.uniform for attribute in outcome.attributes.values()):
        combinations = encoded.collapsed.combinations()
        first = np.empty(len(encoded.collapsed), dtype=np.int64)
        first[combinations] = np.arange(len(combinations))
        counts = np.bincount(combinations, weights=encoded.times, minlength=len(first)).astype(np.int64)
    else:
        times = encoded.times if outcome.row_parts is None else outcome.row_parts.times
        first = np.arange(len(outcome.suppressed))
        counts = np.ones(len(first), dtype=np.int64) if times is None else times.astype(np.int64)
    recodings = {name: outcome.attributes[name].recoding_of(first) for name in encoded.quasi}
    balance = Balance.of(encoded.policy.table.gs_factor)
    return measure(recodings, suppressed=outcome.suppressed[first], counts=counts, weights=weights, balance=balance)


def explain_outcome(encoded: EncodedTable, outcome: Outcome, metrics: Metrics) -> dict[str, Any]:
    """Return the level and loss of each attribute, the suppressed records, and the figures of the search."""
    published = ~outcome.suppressed
    attributes = {
        name: {**outcome.attributes[name].summary(published), "loss": metrics.attributes[name]["loss"]}
        for name in encoded.quasi
    }
    return {"attributes": attributes, "suppressed": int((~published).sum()), **outcome.explain}
