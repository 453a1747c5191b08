"""Persons with several records: what the searches count instead of records, and what links a person's records; and what all classes keep together.

Guarantee: k different persons in every class; l persons with l different values (or, for the other forms of l and for t,
    the histogram in which every person spreads weight 1 over his or her records in the class); and l values common to
    all classes that hold records of one person. Against a reader who knows who is in the table and the
    quasi-identifiers of all records of a person.
    Average risk, population uniqueness and k-map of the policy are kept as `reticent.policy.models` states each, by asking classes to be
    larger until they are.
Not covered: a reader who knows how many records a person has, and looks for classes that many came from.
Cost: pairs of person and value instead of values in every histogram: a check sorts the records of a class once.
    For demands on all classes one search for every step of k, and for k-map classes times the people of the population with different
    quasi-identifiers.
Reference: docs/persons.md; see `reticent.policy.models`.
Differences from the paper: ours. The search itself knows k, l and t only. What demands on all classes need beyond that is reached by a
    larger k, and for k-map by suppressing classes that fit too few people; so the release is sound, and not proved to be of least loss.
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
"""Times the limit of suppression, beyond which classes of twice the size will not do either."""


@dataclass(frozen=True, repr=False)
class People:
    """Who the rows belong to, where somebody has several.

    Attributes:
        persons: of each row.
        pairs: of each row, a number for its person and sensitive values together; numbered person by person.
        owner: person of each pair.
        times: records of each pair.
        columns: the sensitive columns by row, as the model looks at them.
    """

    persons: UInt32s
    pairs: Int32s
    owner: Int32s
    times: UInt32s
    columns: list[SensitiveColumn]

    @property
    def count(self) -> int:
        """How many persons there are."""
        return int(self.owner[-1]) + 1

    def for_core(self) -> tuple[Int32s, UInt32s, list[SensitiveColumn]]:
        """The pairs in the core's form: a pair's values are those of any of its rows."""
        first = np.zeros(len(self.owner), dtype=np.int64)
        first[self.pairs] = np.arange(len(self.pairs))
        columns = [(np.ascontiguousarray(codes[first]), width, tree) for codes, width, tree in self.columns]
        return self.owner, self.times, columns


def persons_of(table: pa.Table, policy: Policy) -> Int64s | None:
    """The person of each row by number; none where the policy names no person."""
    if policy.person is None or policy.person not in table.column_names:
        return None
    column = table.column(policy.person)
    if column.null_count:
        raise DataError(
            f"Column '{policy.person}': {column.null_count:,} records have no person.",
            hint="Fill the column, or leave those records out.",
        )
    if pa.types.is_floating(column.type) or pa.types.is_dictionary(
        column.type
    ):  # NaN is refused; unused words count for nobody
        return Dictionary().encode(column).astype(np.int64)
    coded = pc.dictionary_encode(column).unify_dictionaries()
    return np.concatenate([np.empty(0, dtype=np.int64), *(chunk.indices.to_numpy() for chunk in coded.chunks)])


def people_of(
    table: pa.Table,
    policy: Policy,
    columns: list[SensitiveColumn],
    times: UInt32s | None = None,
) -> People | None:
    """The persons of a table; none where everybody has one record, so that records may be counted as ever."""
    persons = persons_of(table, policy)
    if persons is None or (times is None and int(persons.max()) + 1 == len(persons)):
        return None
    return build_people(persons, columns, times)


def build_people(persons: Int64s, columns: list[SensitiveColumn], times: UInt32s | None = None) -> People:
    """People by the person and the sensitive values of each row; every number below the largest is somebody's."""
    key = persons
    for codes, width, _ in columns:
        key = np.unique(key, return_inverse=True)[1] * width + codes
    # Numbered person by person: the key starts with the person, and `unique` sorts.
    _, first, pairs = np.unique(key, return_index=True, return_inverse=True)
    records = np.bincount(pairs, weights=times).astype(np.uint32)
    return People(persons.astype(np.uint32), pairs.astype(np.int32), persons[first].astype(np.int32), records, columns)


def chosen_records(table: pa.Table, policy: Policy) -> Int64s | None:
    """The rows to release where the policy asks for the first or last record of each person; none for all."""
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
    """What a search finds; classes are asked to be larger until they keep also what the policy asks of all of them together."""
    k, words = encoded.policy.privacy.k or 1, encoded.policy.privacy.overall
    if not words:
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
        f"No release keeps {' and '.join(words)} of privacy beside the rest of the policy; nothing was published.",
        hint="Allow more suppression, or ask for less.",
    )


def _search_linked_classes(encoded: EncodedTable, find: Callable[[EncodedTable], Outcome], k: int) -> Outcome:
    """What a search finds, with linked records suppressed; classes are asked to be larger until few enough are."""
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
        f"At least {int(outcome.suppressed.sum()):,} of {encoded.rows:,} records would have to be suppressed, since what links a person's "
        f"records leaves too few values in common, and the policy allows {encoded.limit:,}; nothing was published.",
        hint="Allow more suppression, lower l, or write person: {column: ..., records: first}.",
    )


def _next_linked_k(encoded: EncodedTable, k: int, lost: int) -> int:
    """How many persons to ask for next where so many records would be lost."""
    if lost > _FAR_FACTOR * encoded.limit:
        return 4 * k
    return k + max(1, k // 4) if encoded.small_steps and lost <= 2 * encoded.limit else 2 * k


def suppress_links(encoded: EncodedTable, outcome: Outcome) -> Outcome:
    """Suppresses records until every class holds by itself and every person keeps l values in common to all classes.

    Ends early where that takes more records than may be suppressed: what is found then is of no use.
    """
    people, l = encoded.people, encoded.policy.privacy.l
    assert people is not None  # noqa: S101 - the caller looked
    classes = classes_of(outcome)
    columns = [(codes, width) for codes, width, _ in people.columns] if l is not None else []
    fewest = math.ceil(l.l) if l is not None else 1
    while (classes >= 0).any() and int((classes < 0).sum()) <= encoded.limit:
        holds = _core.table.check_classes(encoded.model, classes, people.pairs)
        bad = (classes >= 0) & ~holds[classes]
        classes = np.where(bad, -1, classes)
        broken = _core.table.find_violations(classes, people.persons, columns, fewest)
        classes = np.where(broken, -1, classes)
        if not bad.any() and not broken.any():
            break
    before = int(outcome.suppressed.sum())
    story = {"linked_suppressed": int((classes < 0).sum()) - before, "persons": people.count}
    if "classes" in outcome.explain:
        story["classes"] = len(distinct(classes[classes >= 0]))
    return replace(outcome, suppressed=classes < 0, explain={**outcome.explain, **story})


def classes_of(outcome: Outcome) -> Int64s:
    """The class of each row, by what is published of it; -1 for suppressed rows."""
    rows = np.flatnonzero(~outcome.suppressed)
    classes = np.full(len(outcome.suppressed), -1, dtype=np.int64)
    classes[rows] = number_rows([attribute.labels(rows) for attribute in outcome.attributes.values()], len(rows))
    return classes


def number_rows(columns: Sequence[Any], size: int) -> Int64s:
    """A number for every row: the same for rows that are alike in all columns, in the order of their texts.

    So the numbers, and what depends on them, are the same whatever the order of the rows.
    """
    return np.unique(row_keys([encode_column(column) for column in columns], size), return_inverse=True)[1].astype(
        np.int64
    )


def row_keys(columns: Sequence[tuple[Int32s, pa.Array]], size: int) -> Int64s:
    """As `same_rows`, with gaps between the numbers, of columns by their codes and values."""
    ranked = [(np.zeros(size, dtype=np.int64), 1)]
    return pack_codes(ranked + [(text_ranks(values)[codes], len(values)) for codes, values in columns])


def encode_column(column: pa.Array | pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """The codes of a column that is published as it is, and its different values; NaN and infinity are refused."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_string(whole.type) and isinstance(whole, pa.Array) and not whole.null_count:
        return encode_texts(whole)
    if not pa.types.is_floating(column.type):
        return cells.encode_cells(whole)
    words = Dictionary()
    return words.encode(column), words.values


def text_ranks(values: pa.Array) -> Int64s:
    """The place of each value among all, by its text; a missing one first."""
    return np.argsort(pc.array_sort_indices(values.cast(pa.string()), null_placement="at_start").to_numpy())


def next_k(k: int) -> int:
    """The next number of members to ask of every class: one more, then half as many again."""
    return max(k + 1, k * 3 // 2)


def satisfies_overall(policy: Policy, sizes: Int64s) -> bool:
    """Whether classes of these sizes keep what the policy asks of all of them together."""
    privacy = policy.privacy
    if privacy.average_risk is None and privacy.population_uniqueness is None:
        return True
    from reticent.policy.models.average_risk import keeps_average_risk  # few policies ask for these
    from reticent.policy.models.population_uniqueness import population_uniques

    if privacy.average_risk is not None and not keeps_average_risk(sizes, privacy.average_risk):
        return False
    asked = privacy.population_uniqueness
    return asked is None or population_uniques(sizes, asked.population) <= asked.share * asked.population


def enforce_k_map(encoded: EncodedTable, outcome: Outcome, classes: Int64s) -> tuple[Outcome, Int64s]:
    """The outcome without classes that fit too few people of the population, and the classes that are left."""
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
    poor = np.isin(classes, numbers[fits < spec.k])
    left = np.where(poor, -1, classes)
    return replace(outcome, suppressed=left < 0), left


def sizes_of(encoded: EncodedTable, classes: Int64s) -> Int64s:
    """Members of each class: persons where they are known to have several records, otherwise records."""
    rows = np.flatnonzero(classes >= 0)
    if encoded.people is None:
        return np.unique(classes[rows], return_counts=True)[1].astype(np.int64)
    pairs = np.unique(np.stack([classes[rows], encoded.people.persons[rows].astype(np.int64)]), axis=1)
    return np.unique(pairs[0], return_counts=True)[1].astype(np.int64)
