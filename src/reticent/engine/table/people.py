"""Persons with several records: counting persons, suppressing links between their records, requirements on all classes.

Guarantee: every class has k different persons, and l persons with l different values. For the other forms of l and for
    t, every person spreads weight 1 over his or her records in the class. All classes with records of one person have
    l values in common. The attacker knows who is in the table and the quasi-identifiers of all records of a person.
    Average risk, population uniqueness and k-map hold as stated in `reticent.policy.models`.
Not covered: an attacker who knows the number of a person's records and looks for classes with that many.
Cost: every histogram counts pairs of person and value; a check sorts the records of a class once. Requirements on all
    classes take one search per step of k; k-map takes classes times distinct quasi-identifiers of the population.
Reference: docs/persons.md; see `reticent.policy.models`.
Differences from the paper: none; this is our own method. The search itself knows only k, l and t. Requirements on all
    classes are met by a larger k, and k-map by suppressing classes that fit too few people. So the release meets the
    policy, but its loss is not proved to be minimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent import _core
from reticent.arrays import Int32s, Int64s, UInt32s, distinct
from reticent.encode import Dictionary
from reticent.encode.dictionary import encode_texts, pack_codes
from reticent.encode.event_times import event_times
from reticent.errors import DataError, GuaranteeError
from reticent.policy import Policy, cells

if TYPE_CHECKING:
    from reticent.engine.table.encoded_table import EncodedTable, SensitiveColumn
    from reticent.engine.table.generalized import Outcome


_FAR_FACTOR = 8
"""Multiple of the suppression limit beyond which doubling the class size is not enough."""


@dataclass(frozen=True, repr=False)
class People:
    """The persons of a table in which a person may have several rows.

    Attributes:
        persons: the person of each row.
        pairs: per row, the number of its pair of person and sensitive values; numbered person by person.
        owner: the person of each pair.
        times: the records of each pair.
        columns: the sensitive columns by row, in the core's form.
    """

    persons: UInt32s
    pairs: Int32s
    owner: Int32s
    times: UInt32s
    columns: list[SensitiveColumn]

    @property
    def count(self) -> int:
        """Return the number of persons."""
        return int(self.owner[-1]) + 1

    def for_core(self) -> tuple[Int32s, UInt32s, list[SensitiveColumn]]:
        """Return the pairs in the core's form; any row of a pair has the pair's values."""
        first = np.zeros(len(self.owner), dtype=np.int64)
        first[self.pairs] = np.arange(len(self.pairs))
        columns = [(np.ascontiguousarray(codes[first]), width, tree) for codes, width, tree in self.columns]
        return self.owner, self.times, columns


def persons_of(table: pa.Table, policy: Policy) -> Int64s | None:
    """Return the person number of each row; None if the policy names no person."""
    if policy.person is None or policy.person not in table.column_names:
        return None
    column = table.column(policy.person)
    if column.null_count:
        raise DataError(
            f"Column '{policy.person}': {column.null_count:,} records have no person.",
            hint="Fill the column, or remove these records.",
        )
    # Dictionary refuses NaN and ignores unused dictionary entries.
    if pa.types.is_floating(column.type) or pa.types.is_dictionary(column.type):
        return Dictionary().encode(column).astype(np.int64)
    coded = pc.dictionary_encode(column).unify_dictionaries()
    return np.concatenate([np.empty(0, dtype=np.int64), *(chunk.indices.to_numpy() for chunk in coded.chunks)])


def people_of(
    table: pa.Table, policy: Policy, columns: list[SensitiveColumn], times: UInt32s | None = None
) -> People | None:
    """Return the persons of a table; None if every person has one record, so that counting records is enough."""
    persons = persons_of(table, policy)
    if persons is None or (times is None and int(persons.max()) + 1 == len(persons)):
        return None
    return build_people(persons, columns, times)


def build_people(persons: Int64s, columns: list[SensitiveColumn], times: UInt32s | None = None) -> People:
    """Build `People` from the person and sensitive values of each row; person numbers have no gaps."""
    key = persons
    for codes, width, _ in columns:
        key = np.unique(key, return_inverse=True)[1] * width + codes
    # Numbered person by person: the key starts with the person, and `unique` sorts.
    _, first, pairs = np.unique(key, return_index=True, return_inverse=True)
    records = np.bincount(pairs, weights=times).astype(np.uint32)
    return People(persons.astype(np.uint32), pairs.astype(np.int32), persons[first].astype(np.int32), records, columns)


def chosen_records(table: pa.Table, policy: Policy) -> Int64s | None:
    """Return the rows to release if the policy asks for the first or last record per person; None for all rows."""
    settings = policy.persons
    if settings is None or settings.records == "all":
        return None
    persons = persons_of(table, policy)
    if persons is None:
        return None
    places = np.arange(table.num_rows)
    if settings.events is not None:
        places = event_times(table.column(settings.events), settings.events, policy)
    order = np.lexsort((np.arange(table.num_rows), places, persons))
    edge = np.flatnonzero(np.diff(persons[order], prepend=-1))
    rows = order[edge] if settings.records == "first" else order[np.append(edge[1:], len(order)) - 1]
    return np.asarray(np.sort(rows))


def search_classes(encoded: EncodedTable, find: Callable[[EncodedTable], Outcome]) -> Outcome:
    """Run a search with growing k until its outcome also meets the policy's requirements on all classes together."""
    k, overall = encoded.policy.privacy.k or 1, encoded.policy.privacy.overall
    if not overall:
        return _search_linked_classes(encoded, find, k)
    while k <= encoded.rows:
        try:
            outcome = _search_linked_classes(encoded.with_k(k), find, k)
        except GuaranteeError:
            break
        outcome, classes = enforce_k_map(encoded, outcome, classes_of(outcome))
        lost = int(outcome.suppressed.sum())
        if (
            lost <= encoded.limit
            and lost < encoded.rows
            and satisfies_overall(encoded.policy, sizes_of(encoded, classes))
        ):
            return outcome
        k = next_k(k)
    raise GuaranteeError(
        f"No release meets {' and '.join(overall)} together with the rest of privacy in the policy; "
        "nothing was published.",
        hint="Allow more suppression, or relax these requirements.",
    )


def _search_linked_classes(encoded: EncodedTable, find: Callable[[EncodedTable], Outcome], k: int) -> Outcome:
    """Run a search and suppress linked records, with growing class size until the suppression limit is met."""
    people = encoded.people
    if people is None:
        return find(encoded)
    outcome, k = None, max(k, encoded.linked_k if encoded.small_steps else encoded.linked_k // 2)
    while True:
        try:
            outcome = suppress_links(encoded, find(encoded.with_linked_k(k)))
        except GuaranteeError:
            if outcome is None:
                raise
            break
        lost = int(outcome.suppressed.sum())
        if lost <= encoded.limit:
            return replace(outcome, explain={**outcome.explain, "apart": k})
        if k >= people.count:
            break
        k = min(_next_linked_k(encoded, k, lost), people.count)
    raise GuaranteeError(
        f"At least {int(outcome.suppressed.sum()):,} of {encoded.rows:,} records would have to be suppressed, because "
        f"the classes of a person share too few values, and the policy allows {encoded.limit:,}; nothing was published.",
        hint="Allow more suppression, lower l, or write person: {column: ..., records: first}.",
    )


def _next_linked_k(encoded: EncodedTable, k: int, lost: int) -> int:
    """Return the next class size in persons after a search that would lose this many records."""
    if lost > _FAR_FACTOR * encoded.limit:
        return 4 * k
    return k + max(1, k // 4) if encoded.small_steps and lost <= 2 * encoded.limit else 2 * k


def suppress_links(encoded: EncodedTable, outcome: Outcome) -> Outcome:
    """Suppress records until every class meets the model and all classes of each person share l values.

    Stops early once more records are suppressed than the policy allows: the outcome is refused anyway.
    """
    people, l = encoded.people, encoded.policy.privacy.l
    assert people is not None  # noqa: S101 - every caller has checked
    classes = classes_of(outcome)
    columns = [(codes, width) for codes, width, _ in people.columns] if l is not None else []
    fewest = math.ceil(l.l) if l is not None else 1
    while (classes >= 0).any() and int((classes < 0).sum()) <= encoded.limit:
        valid = _core.table.check_classes(encoded.model, classes, people.pairs)
        invalid = (classes >= 0) & ~valid[classes]
        classes = np.where(invalid, -1, classes)
        violations = _core.table.find_violations(classes, people.persons, columns, fewest)
        classes = np.where(violations, -1, classes)
        if not invalid.any() and not violations.any():
            break
    before = int(outcome.suppressed.sum())
    figures = {"linked_suppressed": int((classes < 0).sum()) - before, "persons": people.count}
    if "classes" in outcome.explain:
        figures["classes"] = len(distinct(classes[classes >= 0]))
    return replace(outcome, suppressed=classes < 0, explain={**outcome.explain, **figures})


def classes_of(outcome: Outcome) -> Int64s:
    """Return the class of each row by its published labels; -1 for suppressed rows."""
    rows = np.flatnonzero(~outcome.suppressed)
    classes = np.full(len(outcome.suppressed), -1, dtype=np.int64)
    classes[rows] = number_rows([attribute.labels(rows) for attribute in outcome.attributes.values()], len(rows))
    return classes


def number_rows(columns: Sequence[Any], size: int) -> Int64s:
    """Number the rows in the order of their texts; rows that are equal in all columns get the same number.

    The numbers do not depend on the order of the rows.
    """
    keys = row_keys([encode_column(column) for column in columns], size)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def row_keys(columns: Sequence[tuple[Int32s, pa.Array]], size: int) -> Int64s:
    """Return numbers like `number_rows`, but with gaps, from the codes and values of columns."""
    ranked = [(np.zeros(size, dtype=np.int64), 1)]
    return pack_codes(ranked + [(text_ranks(values)[codes], len(values)) for codes, values in columns])


def encode_column(column: pa.Array | pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """Return the codes and distinct values of a column that is published unchanged; refuse NaN and infinity."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_string(whole.type) and isinstance(whole, pa.Array) and not whole.null_count:
        return encode_texts(whole)
    if not pa.types.is_floating(column.type):
        return cells.encode_cells(whole)
    words = Dictionary()
    return words.encode(column), words.values


def text_ranks(values: pa.Array) -> Int64s:
    """Return the rank of each value by its text; a missing value comes first."""
    return np.argsort(pc.array_sort_indices(values.cast(pa.string()), null_placement="at_start").to_numpy())


def next_k(k: int) -> int:
    """Return the next k to try: larger by one, or by half where that is more."""
    return max(k + 1, k * 3 // 2)


def satisfies_overall(policy: Policy, sizes: Int64s) -> bool:
    """Return whether classes of these sizes meet the policy's average risk and population uniqueness."""
    privacy = policy.privacy
    if privacy.average_risk is None and privacy.population_uniqueness is None:
        return True
    from reticent.policy.models.average_risk import keeps_average_risk  # lazy: few policies need these
    from reticent.policy.models.population_uniqueness import population_uniques

    if privacy.average_risk is not None and not keeps_average_risk(sizes, privacy.average_risk):
        return False
    spec = privacy.population_uniqueness
    return spec is None or population_uniques(sizes, spec.population) <= spec.share * spec.population


def enforce_k_map(encoded: EncodedTable, outcome: Outcome, classes: Int64s) -> tuple[Outcome, Int64s]:
    """Suppress classes that fit too few people of the population; return the outcome and the remaining classes."""
    policy = encoded.policy
    spec = policy.privacy.k_map
    if spec is None:
        return outcome, classes
    from reticent.policy.models.k_map import count_fitting_people, read_population

    rows = np.flatnonzero(classes >= 0)
    numbers, first = np.unique(classes[rows], return_index=True)
    chosen = rows[first]
    labels = {name: attribute.labels(chosen).to_pylist() for name, attribute in outcome.attributes.items()}
    texts = {name: [None if label is None else str(label) for label in column] for name, column in labels.items()}
    hierarchies = {name: policy.columns[name].hierarchy for name in texts}
    fits = count_fitting_people(read_population(policy, spec.file), texts, hierarchies, policy.base)
    classes = np.where(np.isin(classes, numbers[fits < spec.k]), -1, classes)
    return replace(outcome, suppressed=classes < 0), classes


def sizes_of(encoded: EncodedTable, classes: Int64s) -> Int64s:
    """Return the size of each class: in persons if a person may have several records, else in records."""
    rows = np.flatnonzero(classes >= 0)
    if encoded.people is None:
        return np.unique(classes[rows], return_counts=True)[1].astype(np.int64)
    pairs = np.unique(np.stack([classes[rows], encoded.people.persons[rows].astype(np.int64)]), axis=1)
    return np.unique(pairs[0], return_counts=True)[1].astype(np.int64)
