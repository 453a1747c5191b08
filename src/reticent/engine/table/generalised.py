"""From levels to a release: publish the generalised values, say what each attribute cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent import _core
from reticent.engine.table.subject import claims
from reticent.release import Counts, Guarantee, Release
from reticent.utility.metrics import Metrics, measure
from reticent.utility.recoding import Recoding

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.engine.table.subject import Subject
    from reticent.policy.hierarchy import Ladder

AGAINST = "a reader who knows who is in the table and all their quasi-identifiers"
NOT_COVERED = (
    "several records of one person in the same class (records are counted, not persons)",
    "a reader who knows sensitive values of other persons in the same class",
    "a second release of the same persons",
)


@dataclass(frozen=True, repr=False)
class Outcome:
    """What a search found, per distinct combination of quasi-identifiers or per row.

    Attributes:
        levels: per quasi-identifier, one level for all or one per row.
        suppressed: which rows are left out.
        explain: what the search has to say about itself.
    """

    method: str
    levels: dict[str, int | npt.NDArray[np.int64]]
    suppressed: npt.NDArray[np.bool_]
    explain: dict[str, Any] = field(default_factory=dict)


def publish(subject: Subject, table: pa.Table, outcome: Outcome, rng: Rng) -> Release:
    """The generalised table in random row order, with its metrics and the story of its levels."""
    policy = subject.policy
    kept = np.flatnonzero(~outcome.suppressed)
    # The input may be sorted by something a reader knows.
    kept = kept[_core.random.permutation(len(kept), key=rng.key("order"))]
    columns = {}
    rows = pa.array(kept)
    for name in policy.columns:
        if name in subject.ladders:
            level = outcome.levels[name]
            chosen = level if isinstance(level, int) else level[kept]
            columns[name] = labels(subject.ladders[name], subject.codes(name)[kept], chosen)
        elif name in policy.sensitive or name in policy.plain:
            columns[name] = table.column(name).take(rows)
    metrics = measured(subject, outcome)
    lost = int(outcome.suppressed.sum())
    explain = story(subject, outcome, metrics)
    if policy.person is not None:
        # Counted for the reader: k and l hold for records, not for persons.
        explain["further_records_of_a_person"] = subject.rows - pc.count_distinct(table.column(policy.person)).as_py()
    return Release(
        kind="generalised",
        method=outcome.method,
        tables={"data": pa.table(columns)},
        guarantee=Guarantee(claims(policy), AGAINST, NOT_COVERED),
        counts=Counts(subject.rows, subject.rows - lost, 0, lost),
        policy_hash=policy.hash,
        metrics=metrics.to_dict(),
        explain=explain,
        seeded=rng.seeded,
    )


def labels(ladder: Ladder, codes: npt.NDArray[np.int32], level: int | npt.NDArray[np.int64]) -> pa.Array:
    """The values to publish; where levels differ from row to row, as text."""
    if isinstance(level, int):
        return ladder.labels[level].take(pa.array(ladder.tables[level][codes]))
    starts = np.cumsum([0, *(len(names) for names in ladder.labels)])
    nodes = np.zeros(len(codes), dtype=np.int64)
    for step, table in enumerate(ladder.tables):
        at = level == step
        nodes[at] = starts[step] + table[codes[at]]
    return pa.concat_arrays([names.cast(pa.string()) for names in ladder.labels]).take(pa.array(nodes))


def measured(subject: Subject, outcome: Outcome) -> Metrics:
    """All measures; on distinct combinations where every row of one has the same levels."""
    weights = dict(zip(subject.quasi, subject.weights, strict=True))
    if all(isinstance(level, int) for level in outcome.levels.values()):
        combinations = subject.collapsed.combinations()
        first = np.empty(len(subject.collapsed), dtype=np.int64)
        first[combinations] = np.arange(subject.rows)
        counts = np.bincount(combinations, minlength=len(first))
    else:
        first, counts = np.arange(subject.rows), np.ones(subject.rows, dtype=np.int64)
    recodings = {
        name: Recoding.from_levels(subject.codes(name)[first], subject.ladders[name], _at(outcome.levels[name], first))
        for name in subject.quasi
    }
    return measure(recodings, suppressed=outcome.suppressed[first], counts=counts, weights=weights)


def _at(level: int | npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> int | npt.NDArray[np.int64]:
    return level if isinstance(level, int) else level[rows]


def story(subject: Subject, outcome: Outcome, metrics: Metrics) -> dict[str, Any]:
    """Which level each attribute reached, what it cost, what was suppressed, and how the search went."""
    attributes = {}
    for name in subject.quasi:
        level, height = outcome.levels[name], subject.ladders[name].height
        figures: dict[str, Any] = {"height": height, "loss": metrics.attributes[name]["loss"]}
        if isinstance(level, int):
            figures["level"] = level
        else:
            rows = np.bincount(level[~outcome.suppressed], minlength=height + 1)
            figures["records_per_level"] = rows.tolist()
        attributes[name] = figures
    said: dict[str, Any] = {"attributes": attributes, "suppressed": int(outcome.suppressed.sum()), **outcome.explain}
    if subject.policy.privacy.t is not None:
        said["reference"] = {name: _reference(subject, name) for name in subject.policy.sensitive}
    return said


def _reference(subject: Subject, name: str) -> list[list[Any]]:
    """The distribution the classes are compared with: that of the whole input."""
    words = subject.encoded.dictionaries[name]
    counts = np.bincount(subject.codes(name), minlength=len(words))
    values = words.values.cast(pa.string()).to_pylist()
    return sorted(([value, int(n)] for value, n in zip(values, counts, strict=True)), key=lambda pair: pair[0] or "")
