"""Publish linked tables: the rows whose slot all persons of a class have, with the finest quasi-identifiers they share.

Guarantee: for an attacker who joins the tables of the release in any way, the persons of a class look alike; see
    `classes`.
Not covered: what sensitive values disclose about one another; columns of the role plain.
Cost: one sort of the rows per table.
Reference: see `classes`.
Differences from the paper: cells climb their hierarchy instead of becoming ranges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s, UInt64s
from reticent.engine.identifiers import policy_exclusions
from reticent.engine.linked.classes import classes_of
from reticent.engine.linked.rows import Column, People, Rows, people_of, refuse_other_demands
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.policy.settings.linked import PERSON, VISIT
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, exclusions

METHOD = "linked"


@dataclass(frozen=True, repr=False)
class LinkedRelease:
    """A release of linked tables, with private data: the source row of each published row, and the suppressed rows."""

    release: Release
    source_rows: Mapping[str, Int64s]
    suppressed: Mapping[str, int]


def release_tables(tables: Mapping[str, pa.Table], policy: Policy, rng: Rng) -> LinkedRelease:
    """Release tables of the same persons, by name.

    A table has the policy's person column, `visit` if its rows belong to visits, and its columns of the policy.
    `rng` must be fresh for every release, so that the pseudonyms of two releases cannot be linked.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    refuse_other_demands(policy)
    people = people_of(tables, policy, rng.key("shift"))
    classes = classes_of(people, policy)
    class_of = np.empty(people.count, dtype=np.int64)
    for number, members in enumerate(classes):
        class_of[members] = number
    names = {PERSON: _pseudonyms("p", people.count, rng), VISIT: _pseudonyms("v", people.visits, rng)}
    losses, published, places = [], {}, {}
    for name, rows in people.tables.items():
        group, shown = _choose_rows(rows, people, classes, class_of)
        published[name], places[name], loss = _publish_table(rows, group, shown, names, rng)
        losses += loss
    return LinkedRelease(_release(people, policy, len(classes), published, losses, rng), places, people.suppressed)


@dataclass(frozen=True, repr=False)
class Pseudonyms:
    """A pseudonym for each person or visit, and its rank."""

    ranks: Int64s
    names: pa.Array


def _pseudonyms(letter: str, count: int, rng: Rng) -> Pseudonyms:
    """Return pseudonyms in an order that cannot be computed without the key."""
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(_random_numbers(rng, f"pseudonym {letter}", count), kind="stable")] = np.arange(count)
    width = len(str(max(1, count)))
    return Pseudonyms(ranks, pa.array([f"{letter}{rank + 1:0{width}d}" for rank in ranks.tolist()], pa.string()))


def _random_numbers(rng: Rng, purpose: str, count: int) -> UInt64s:
    return np.frombuffer(hashlib.shake_256(rng.key(purpose)).digest(8 * count), dtype=np.uint64)


def _choose_rows(rows: Rows, people: People, classes: list[Int64s], class_of: Int64s) -> tuple[Int64s, Int64s]:
    """Return the group of each row (its class and slot), and the rows whose slot all persons of the class have."""
    number = class_of[rows.person]
    group = np.unique(number * (int(rows.slot.max(initial=0)) + 1) + rows.slot, return_inverse=True)[1].reshape(-1)
    if not rows.counted:
        visits = people.visit_counts()
        fewest = np.array([int(visits[members].min()) for members in classes], dtype=np.int64)
        return group, np.flatnonzero(rows.slot <= fewest[number])
    sizes = np.array([len(members) for members in classes], dtype=np.int64)
    return group, np.flatnonzero(np.bincount(group)[group] == sizes[number])


def _publish_table(
    rows: Rows, group: Int64s, shown: Int64s, names: Mapping[str, Pseudonyms], rng: Rng
) -> tuple[pa.Table, Int64s, list[float]]:
    """Return the published rows of a table, their source rows, and the loss of each column."""
    noise = _random_numbers(rng, f"rows {rows.layout.name}", len(shown))
    # Sorted by pseudonyms, then at random: the order of rows must not disclose their slots.
    person, visit = names[PERSON].ranks[rows.person[shown]], rows.visit[shown]
    visits = np.where(visit >= 0, names[VISIT].ranks[visit] if len(names[VISIT].ranks) else 0, -1)
    shown = shown[np.lexsort((noise, visits, person))]
    columns: dict[str, Any] = {PERSON: names[PERSON].names.take(pa.array(rows.person[shown]))}
    if VISIT in rows.layout.link_columns:
        visit = rows.visit[shown]
        columns[VISIT] = names[VISIT].names.take(pa.array(np.where(visit >= 0, visit, 0), mask=visit < 0))
    losses: list[float] = []
    for name, column in rows.columns.items():
        columns[name], loss = _cells(column, group[shown], shown)
        losses += loss
    return pa.table(columns), rows.origin[shown], losses


def _cells(column: Column, group: Int64s, shown: Int64s) -> tuple[pa.Array, list[float]]:
    """Return the cells of a column: unchanged, or the lowest node that a group shares."""
    codes = column.codes[shown]
    if column.hierarchy is None:
        return column.values.take(pa.array(codes)).cast(pa.string()), []
    _, group = np.unique(group, return_inverse=True)
    group = group.reshape(-1)
    level = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    label, before, lost = np.zeros(len(codes), dtype=np.int64), 0, 0.0
    for height, (table, names, leaves) in enumerate(
        zip(column.hierarchy.node_ids, column.hierarchy.labels, column.hierarchy.leaves, strict=True)
    ):
        nodes = table[codes].astype(np.int64)
        low = np.full(len(level), np.iinfo(np.int64).max)
        high = np.full(len(level), -1)
        np.minimum.at(low, group, nodes)
        np.maximum.at(high, group, nodes)
        level[(level < 0) & (low == high)] = height
        here = np.flatnonzero(level[group] == height)
        label[here] = before + nodes[here]
        before += len(names)
        lost += float(((leaves[nodes[here]] - 1) / max(1, column.hierarchy.size - 1)).sum())
    labels = pa.concat_arrays([names.cast(pa.string()) for names in column.hierarchy.labels])
    return labels.take(pa.array(label)), [lost / max(1, len(codes))]


def _uncounted_sentences(policy: Policy) -> tuple[str, ...]:
    names = policy.tables.uncounted if policy.tables is not None else ()
    return (f"an attacker who knows how many rows a person has in {', '.join(names)}, including none",) if names else ()


def _release(
    people: People, policy: Policy, classes: int, tables: dict[str, pa.Table], losses: list[float], rng: Rng
) -> Release:
    input_rows = sum(people.input_rows.values())
    published = sum(table.num_rows for table in tables.values())
    claims: dict[str, Any] = {"k": {"persons": policy.privacy.k}} if policy.privacy.k else {}
    if policy.privacy.l is not None:
        claims["l"] = {"persons": {"frequency": int(policy.privacy.l.l)}}
    return Release(
        kind="table",
        shape="linked",
        method=METHOD,
        tables=tables,
        guarantee=Guarantee(
            claims,
            AGAINST["linked"],
            exclusions(*policy_exclusions(policy), *_uncounted_sentences(policy), persons=True),
        ),
        records=RecordCounts(input=input_rows, published=published, suppressed=input_rows - published),
        policy_hash=policy.hash,
        metrics={
            "loss": float(np.mean(losses)) if losses else 0.0,
            "average_class_size": people.count / classes,
            "rows_kept": published / max(1, input_rows),
        },
        explain={
            "persons": people.count,
            "classes": classes,
            "input_rows": dict(people.input_rows),
            "published_rows": {name: table.num_rows for name, table in tables.items()},
        },
        seeded=rng.seeded,
    )
