"""Search the release of one table on its counts, with the same result as on one machine.

Spark or DuckDB collapses the rows to distinct combinations with sensitive histograms. The search of
`reticent.engine.table.optimal`, `mondrian` or `local` runs on these counts. Its result is applied to the rows where
they are stored, and counted again for the verifier (`reticent.connectors.pushdown.verifier`). Mondrian's strict cuts
keep equal rows together, so that a combination with its count is enough. `local` may split equal rows for l and t: a
given number of them gets each label, chosen by a keyed order of their plain cells that nobody knows afterwards.

Guarantee: as in `reticent.engine.table.optimal`, `mondrian` or `local` (attacker included), for the rows that were
    counted.
Not covered: more than 2^30 rows; other methods (`auto` means `optimal` here); relaxed cuts, which need single rows.
Cost: the distinct combinations in memory; under `mondrian` and `local` they are joined with the rows.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`.
Differences from the single machine: rows are sorted by their published values instead of shuffled, which also hides the
    input order; of equal rows that `local` splits, one machine takes the first in input order; variants of a sensitive
    value are refused, not merged; pseudonyms, shifted dates and combined columns are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reticent.connectors.pushdown.rows import FIRST, LABEL, LEAF, RECORDS, Recoding, Rows, split_counts
from reticent.engine.base import claims
from reticent.engine.identifiers import refuse_overall_demands
from reticent.engine.table import generalized
from reticent.engine.table.base import persons_notice
from reticent.engine.table.cuts import Cuts
from reticent.engine.table.encoded_table import EncodedTable, apply_limits, refuse_empty_policy
from reticent.engine.table.generalized import Outcome, generalization_exclusions
from reticent.engine.table.levels import Levels
from reticent.engine.table.local import recode_table
from reticent.engine.table.mondrian import find_classes
from reticent.engine.table.optimal import optimum
from reticent.engine.table.people import search_classes
from reticent.engine.value_variants import merge_variants
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.column_patterns import person_columns
from reticent.policy.hierarchy import HierarchyLevels
from reticent.publication.identifier_variants import warn_of_count
from reticent.release import Guarantee, RecordCounts
from reticent.release.wording import AGAINST
from reticent.verify.original import persons
from reticent.verify.published import Published, text_table
from reticent.verify.result import VerificationResult

METHODS = ("optimal", "mondrian", "local")
"""Supported methods; the first is used for `auto`."""


@dataclass(frozen=True, repr=False)
class ReleasePlan:
    """Result of the search on counts: how to publish the rows, and the statements of the release."""

    recoding: Recoding
    guarantee: Guarantee
    counts: RecordCounts
    metrics: dict[str, float]
    explain: dict[str, Any]
    method: str
    outcome: Outcome
    person_records: pa.Table | None
    """The combinations, one record each, if a person has several records."""

    def verify_persons(self, policy: Policy) -> VerificationResult | None:
        """Return the verification result for claims about persons, from the counts; None if everyone has one record."""
        if self.person_records is None:
            return None
        # Published rows are sorted by their cells. Shuffle these combinations, so that the verifier sees no input
        # order.
        rows = np.random.default_rng(0).permutation(np.flatnonzero(~self.outcome.suppressed))
        labels = {name: self.outcome.attributes[name].labels(rows) for name in policy.quasi}
        shown = [name for name in policy.sensitive if name in self.person_records.column_names]
        values = {name: self.person_records.column(name).take(pa.array(rows)) for name in shown}
        published = Published(
            name="",
            shape="generalized",
            kind="table",
            method=self.method,
            tables={"data": text_table(pa.table(labels | values))},
            claims=self.guarantee.claims,
            counts=vars(self.counts),
            explain=self.explain,
        )
        return persons.compare_with_original(published, policy, persons.Input(self.person_records, rows))


def check_policy(columns: Sequence[str], policy: Policy, place: str) -> None:
    """Refuse policy settings that are not supported when rows are only counted."""
    if policy.table.method == "veil":
        raise PolicyError(
            f"The veil does not run on {place}.",
            hint="Veil the table on one machine: reticent anonymize --store STORE. Or generalize it: write table: {method: optimal} in the policy.",
        )
    if policy.table.method not in ("auto", *METHODS):
        raise PolicyError(
            f"{place} supports only the methods {' and '.join(METHODS)}.",
            hint=f"Write table: {{method: {METHODS[0]}}} in the policy.",
        )
    if policy.table.method == "mondrian" and policy.table.cuts == "relaxed":
        raise PolicyError(f"{place} supports only strict cuts.", hint="Remove cuts: relaxed from the policy.")
    refuse_overall_demands(policy)
    if len(set(columns)) < len(columns):
        raise DataError("The data has two columns of the same name.", hint="Rename one of them.")
    if policy.persons is not None and policy.persons.records != "all":
        raise PolicyError(
            f"{place} can only release all records of a person.",
            hint="Choose one record per person beforehand, or write records: all.",
        )
    for name, spec in policy.columns.items():
        if spec.combine is not None or (spec.transform is not None and not spec.transform.drop):
            raise PolicyError(
                f"columns.{name}: {place} cannot pseudonymize, shift dates or combine columns.",
                hint="Transform the column beforehand and give it its new role.",
            )
    policy.check_columns(list(columns))


def search_counts(rows: Rows, policy: Policy) -> ReleasePlan:
    """Collapse the rows where they are stored, and search the release here."""
    refuse_empty_policy(policy)
    protected = policy.sensitive if policy.privacy.l is not None or policy.privacy.t is not None else ()
    people = [policy.person] if policy.person is not None and check_persons(rows, policy.person) else []
    names = [*policy.quasi, *protected, *people]
    distinct, times = split_counts(rows.count_combinations(names), names)
    if not len(times):
        raise DataError("The table has no rows.", hint="Provide at least one row.")
    for name in policy.sensitive:
        values = distinct.select([name]) if name in names else split_counts(rows.count_combinations([name]), [name])[0]
        refuse_variants(values, policy)
    if people:  # a person's records count one by one
        distinct = distinct.take(pa.array(np.repeat(np.arange(len(times)), times)))
        times = np.ones(distinct.num_rows, dtype=np.uint32)
    encoded = EncodedTable.from_table(policy, distinct, None if people else times)
    method = METHODS[0] if policy.table.method == "auto" else policy.table.method
    owned, parts = distinct if people else None, None if method == METHODS[0] else distinct
    del distinct
    encoded = replace(encoded, cancellation=apply_limits(encoded.cancellation, policy))
    outcome = _search(encoded, method)
    if outcome.row_parts is not None:
        encoded, times = encoded.split_rows(outcome.row_parts.rows, outcome.row_parts.times), outcome.row_parts.times
    guarantee = Guarantee(
        claims(policy, several=bool(people)), AGAINST["generalized"], generalization_exclusions(policy)
    )
    return ReleasePlan(
        recoding=_recoding_of(encoded, outcome, parts, owned),
        guarantee=_warn_of_persons(guarantee, rows, policy, int(times.sum(dtype=np.int64))),
        counts=_counts(times, outcome.suppressed),
        metrics=generalized.measure_outcome(encoded, outcome).to_dict(),
        explain=_explain(encoded, outcome, times),
        method=method,
        outcome=outcome,
        person_records=owned,
    )


def _search(encoded: EncodedTable, method: str) -> Outcome:
    if method == "local":
        return recode_table(encoded).outcome
    return find_classes(encoded) if method == "mondrian" else search_classes(encoded, optimum)


def _warn_of_persons(guarantee: Guarantee, rows: Rows, policy: Policy, size: int) -> Guarantee:
    """Return the guarantee, with a warning if an identifier column shows persons that the policy does not name."""
    for name in person_columns(policy.identifiers) if policy.person is None else ():
        if repeats := rows.count_repeats(name):
            notice = persons_notice(name, repeats, size)
            return replace(guarantee, not_covered=(notice, *guarantee.not_covered))
    return guarantee


def check_persons(rows: Rows, person: str) -> bool:
    """Return whether a person has several records; refuse records without a person, warn of identifier variants."""
    if missing := rows.count_nulls(person):
        raise DataError(
            f"Column '{person}': {missing:,} records have no person.", hint="Fill the column, or remove those records."
        )
    warn_of_count(rows.count_identifier_variants(person))
    return rows.has_several_records(person)


def refuse_variants(values: pa.Table, policy: Policy) -> None:
    """Refuse variants of a value: the counts here do not show the most frequent variant, so they cannot be merged."""
    (name,) = values.column_names
    column = values.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    labels = pa.table({name: column.unique()})
    if not merge_variants(labels, policy).equals(labels):
        raise DataError(
            f"Column '{name}': one value is written in several ways, which this method cannot merge.",
            hint="Use one way of writing each value before the release.",
        )


def _recoding_of(
    encoded: EncodedTable, outcome: Outcome, distinct: pa.Table | None, people: pa.Table | None
) -> Recoding:
    """Return how rows are published: column by column, or by combination if `distinct` is given."""
    policy = encoded.policy
    person = [policy.person] if people is not None and policy.person is not None else []
    labels: dict[str, str | pa.Table] = {}
    for name, attribute in outcome.attributes.items() if distinct is None else ():
        hierarchy, level = encoded.hierarchies[name], int(attribute.level)  # type: ignore[union-attr]
        if level == hierarchy.height:
            labels[name] = hierarchy.labels[-1][0].as_py()
        elif level:
            labels[name] = _label_table(hierarchy, level)
    return Recoding(
        published=[name for name in policy.columns if name in policy.released],
        labels=labels,
        keys=[*encoded.quasi, *person],
        suppressed=_suppressed_rows(encoded, outcome, distinct, people) if outcome.suppressed.any() else None,
        classes=None if distinct is None else _classes(encoded, outcome, distinct, persons=bool(person)),
        person_columns=person,
        plain=[name for name in policy.plain if name in policy.released],
    )


def _label_table(hierarchy: HierarchyLevels, level: int) -> pa.Table:
    labels = hierarchy.labels[level].take(pa.array(hierarchy.node_ids[level]))
    return pa.table({LEAF: hierarchy.labels[0], LABEL: labels})


def _classes(encoded: EncodedTable, outcome: Outcome, distinct: pa.Table, *, persons: bool) -> pa.Table:
    """Return each combination of quasi-identifiers, or each piece of split rows, with its published labels.

    Suppressed combinations are omitted, except where persons are suppressed one by one.
    """
    pieces = outcome.row_parts
    published = np.ones(len(outcome.suppressed), dtype=bool) if persons else ~outcome.suppressed
    if pieces is not None and len(pieces.rows) > distinct.num_rows:
        chosen = np.flatnonzero(published)
        before = np.cumsum(pieces.times, dtype=np.int64) - pieces.times
        starts = before - np.repeat(before[_first_positions(pieces.rows)], np.bincount(pieces.rows))
        places = {FIRST: pa.array(starts[chosen]), RECORDS: pa.array(pieces.times[chosen].astype(np.int64))}
        rows, names = pieces.rows[chosen], [*encoded.quasi, *encoded.policy.sensitive]
    else:
        chosen = _first_positions(encoded.collapsed.combinations())
        chosen, places = chosen[published[chosen]], {}
        rows, names = chosen, [*encoded.quasi]
    labels = {f"{LABEL}{i}": outcome.attributes[name].labels(chosen) for i, name in enumerate(encoded.quasi)}
    return pa.table({name: _cells(distinct, name, rows) for name in names} | labels | places)


def _first_positions(numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the first position of each number."""
    first = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def _cells(table: pa.Table, name: str, rows: npt.NDArray[Any]) -> pa.ChunkedArray:
    cells = table.column(name).take(pa.array(rows))
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _suppressed_rows(
    encoded: EncodedTable, outcome: Outcome, distinct: pa.Table | None, people: pa.Table | None
) -> pa.Table | None:
    """Return the quasi-identifiers and persons of suppressed rows: as published or, with classes, as in the input.

    `local` may publish two classes alike and suppress one of them. Without persons, its combinations are in no class.
    """
    rows = np.flatnonzero(outcome.suppressed)
    if distinct is None:
        columns = {f"__{i}": outcome.attributes[name].labels(rows) for i, name in enumerate(encoded.quasi)}
    elif people is None:
        return None
    else:
        columns = {f"__{i}": _cells(distinct, name, rows) for i, name in enumerate(encoded.quasi)}
    if people is not None and encoded.policy.person is not None:
        columns[f"__{len(columns)}"] = _cells(people, encoded.policy.person, rows)
    table = pa.table(columns)
    return table.group_by(table.column_names).aggregate([])


def _counts(times: npt.NDArray[np.uint32], suppressed: npt.NDArray[np.bool_]) -> RecordCounts:
    rows, suppressed_rows = int(times.sum(dtype=np.int64)), int(times[suppressed].sum(dtype=np.int64))
    return RecordCounts(rows, rows - suppressed_rows, 0, suppressed_rows)


def _explain(encoded: EncodedTable, outcome: Outcome, times: npt.NDArray[np.uint32]) -> dict[str, Any]:
    published = np.where(outcome.suppressed, 0, times)
    return {
        "attributes": {
            name: _explain_attribute(attribute, published) for name, attribute in outcome.attributes.items()
        },
        "suppressed": int(times.sum(dtype=np.int64) - published.sum(dtype=np.int64)),
        "combinations": len(encoded.collapsed),
        **outcome.explain,
    }


def _explain_attribute(attribute: Levels | Cuts, published: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the level of an attribute, or the number of records per level or with exact values."""
    if isinstance(attribute, Cuts):
        return {"exact_records": int(published[attribute.exact_rows()].sum(dtype=np.int64))}
    if isinstance(attribute.level, int):
        return {"level": attribute.level, "height": attribute.hierarchy.height}
    counts = np.bincount(attribute.level, weights=published, minlength=attribute.hierarchy.height + 1)
    return {"records_per_level": counts.astype(np.int64).tolist(), "height": attribute.hierarchy.height}
