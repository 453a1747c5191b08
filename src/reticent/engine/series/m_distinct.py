"""m-Distinct: every person keeps at least m candidate values that later releases cannot rule out.

Three phases. Buckets are made of the update set signatures of old records (the candidate update sets of their last group) and of the
intersections of two signatures. Every record goes to the bucket with the highest score that its signature implies, records with the
fewest choices first. New records go where their value is covered, or form first groups of exactly m. Buckets are balanced with
counterfeits and halved along the quasi-identifiers until each part is a group with one value per entry.

Guarantee: every group has m records with different values (m-unique). The values of a person's group are a legal update instance,
    matched one to one, of the previous group, so that no candidate is ever excluded (Lemma 3). The gate bounds the share of each
    candidate (`max_risk: 1, spread: false` is the paper's m-Distinct, without a gate). Against an attacker who knows all releases,
    every quasi-identifier and the update knowledge, person by person.
Not covered: attackers who reason over several persons jointly; wrong update knowledge. Without the gate the risk is not bounded.
Cost: O(n b) for b buckets to choose from, O(n log^2 n) for the splits, native; b is at most the number of signatures and of their
    intersections: at most 24 signatures of the same components of the update graph are intersected with one another.
Reference: F. Li, S. Zhou, "Challenging more updates: towards anonymous re-publication of fully dynamic datasets", 2008.
Differences from the paper: Definition 14 is read with a one-to-one condition; a record enters an entry only if the others keep distinct
    representatives; old records are assigned before new ones, a new record opens no empty bucket, and equal scores go to the bucket with
    most entries for the value; a flow routes the records of a bucket to its entries, with the least number of groups, and gives
    counterfeits their values; an axis cut or an edge coloring replaces the paper's exponential search for a split; first groups, for
    which the paper has no algorithm, are cut by place, or dealt by value where signatures would be many; with `spread`, first groups
    take values of different components of the update graph where that costs no counterfeits, or all of one component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent import _core
from reticent.arrays import Float32s, Int32s
from reticent.engine.base import Members, refuse_group_column, sole_sensitive
from reticent.engine.rng import Rng
from reticent.engine.series.base import SeriesPublisher
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.history import History
from reticent.engine.series.quasi import attributes, points, traits
from reticent.engine.series.tables import count_changes, count_reasons, release_tables, risk_quantiles
from reticent.engine.series.update_graph import People, enforce_limit
from reticent.engine.snapshot import pack
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.updates import Updates, updates_of
from reticent.release import Guarantee, RecordCounts, Release, person_hashes
from reticent.release.wording import AGAINST, SERIES, exclusions

HEADROOM = 4
"""Factor on the least group size for the limit: with progressing illnesses, five releases then withhold almost nobody."""


class MDistinct(SeriesPublisher):
    """The next release of a fully dynamic table."""

    method = "m-distinct"
    static_values: ClassVar[bool] = False
    """Whether sensitive values never change."""
    _first_group_needs = "different sensitive values"
    """What must differ among the members of a first group."""

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._sensitive = sole_sensitive(policy, "A series needs")
        refuse_group_column(policy)
        self.history = History()
        self._domain: tuple[str | None, ...] = ()
        updates_of(policy, self._sensitive, constant=self.static_values)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of every release together with all earlier ones."""
        claims = {self.method: self.policy.m, "max_risk": self.policy.series.limit}
        return Guarantee(claims, AGAINST["series"], exclusions(*SERIES))

    def members(self) -> Members:
        """Return the persons and groups of the last release."""
        return Members(*self.history.members(self.releases))

    @property
    def releases(self) -> int:
        """The number of releases."""
        return self.history.releases

    def _publish(self, table: pa.Table) -> Release:
        people, updates = self._read(table)
        quasi = attributes(table, self.policy)
        where = points(quasi, table.num_rows)
        grouping, after, risk = self._enforce_limit(people, updates, self._group(people, updates, where))
        grouping = grouping.hide_single_persons(where)
        counts = self._count(grouping, table.num_rows)
        explain = {
            "release": after.releases,
            "groups": len(grouping),
            "changes": count_changes(self.history, people),
            "withheld": count_reasons(grouping),
            "risk": risk_quantiles(risk),
            "updates": {"closed": updates.closure_pairs, "stayed": updates.stay_values},
        }
        release = Release(
            kind=self.kind,
            shape="m-distinct",
            method=self.method,
            tables=release_tables(table, self.policy, quasi, grouping, updates),
            guarantee=self.guarantee,
            records=counts,
            policy_hash=self.policy.hash,
            metrics=_metrics(grouping, risk),
            explain=explain,
            seeded=self.rng.seeded,
        )
        self.history, self._domain, self._figures = after, updates.values, dict(release.metrics)
        return release

    def _read(self, table: pa.Table) -> tuple[People, Updates]:
        names, column = table.column(str(self.policy.person)), self._sensitive
        column_values = table.column(column).cast(pa.string()).combine_chunks().dictionary_encode()
        labels = column_values.dictionary.to_pylist() + ([None] if column_values.null_count else [])
        updates = updates_of(self.policy, column, (*self._domain, *labels), constant=self.static_values)
        lookup = np.array([updates.codes[label] for label in labels], dtype=np.int32)
        codes = pc.fill_null(column_values.indices, len(labels) - 1).to_numpy(zero_copy_only=False)
        hashes = person_hashes(names.cast(pa.string()).to_pylist(), self.rng.key("series persons"))
        trait_hashes = traits(table, self.policy, self.rng.key("series traits"))
        return People(hashes, trait_hashes, lookup[codes]), updates

    def _colors(self, updates: Updates) -> tuple[Int32s, bool]:
        """Return what must differ in a first group, and whether that may be relaxed."""
        if self.policy.series.spread:
            return updates.components, True
        return np.arange(len(updates), dtype=np.int32), False

    def _first_group_size(self, updates: Updates) -> int:
        """Return the size of a first group: m, or more where updates differ in probability and candidates will drift apart."""
        size, components = self.policy.group_size, int(updates.components.max(initial=0)) + 1
        if updates.uniform or not self.policy.series.spread:
            return size
        large_size = math.ceil(HEADROOM / self.policy.series.limit)
        return max(size, large_size) if components >= 2 * large_size else size

    def _group(self, people: People, updates: Updates, where: Float32s) -> Grouping:
        colors, relax = self._colors(updates)
        rules = FirstGroupRules(self._first_group_size(updates), colors, self._key("groups"), relax, self.static_values)
        grouping = form_groups(self.history, updates, people, where, rules)
        if grouping is None:
            raise GuaranteeError(
                f"A first group of {rules.m} needs as many {self._first_group_needs}, and the domain has fewer; nothing was published.",
                hint="Lower series.m, raise series.max_risk, or add values to the update knowledge.",
            )
        return grouping

    def _key(self, purpose: str) -> bytes:
        return self.rng.key(f"series {purpose} {self.releases + 1}")

    def _enforce_limit(
        self, people: People, updates: Updates, grouping: Grouping
    ) -> tuple[Grouping, History, _core.series.Risks]:
        return enforce_limit(self.history, updates, people, grouping, self.policy.series.limit)

    def _count(self, grouping: Grouping, rows: int) -> RecordCounts:
        published = int((grouping.row >= 0).sum())
        share = (rows - published) / rows
        if published == 0 or share > self.policy.series.max_withheld:
            raise GuaranteeError(
                f"{rows - published:,} of {rows:,} records would be withheld ({share:.0%}); nothing was published.",
                hint="Raise series.max_risk or series.m, or allow more withheld records with series.max_withheld.",
            )
        return RecordCounts(input=rows, published=published, withheld=rows - published)

    def snapshot(self) -> bytes:
        """Return history, domain, pending records, and the key."""
        state, pending = self._state()
        domain = pa.table({"domain": pa.array(self._domain, type=pa.string())})
        tables = self.history.to_tables() | pending | {"domain": domain}
        return pack(self.policy, self.rng, state | {"metrics": self._figures}, tables)

    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], _: dict[str, bytes]) -> None:
        self.history, self._figures = History.from_tables(tables), saved["metrics"]
        self._domain = tuple(tables["domain"].column("domain").to_pylist())


def _metrics(grouping: Grouping, risk: _core.series.Risks) -> dict[str, float]:
    counterfeits = float((grouping.row < 0).sum())
    return {
        "counterfeits": counterfeits,
        "counterfeits_per_group": counterfeits / len(grouping),
        "max_risk": float(risk.worst.max()),
        "average_class_size": len(grouping.row) / len(grouping),
    }


@dataclass(frozen=True, repr=False)
class FirstGroupRules:
    """The rules for first groups, and the key of all random choices.

    Attributes:
        m: members of a first group.
        colors: per sensitive code, what must differ in a first group.
        key: the key of the release.
        relax: whether the colors may be relaxed.
        static_values: values do not change; a changed value is covered where the person's last group showed the new one.
    """

    m: int
    colors: Int32s
    key: bytes
    relax: bool = False
    static_values: bool = False


def form_groups(
    history: History, updates: Updates, people: People, points: Float32s, rules: FirstGroupRules
) -> Grouping | None:
    """Form the groups of the next release; None if the domain has too few colors."""
    last = history.last(people.hashes)
    old, at = last >= 0, np.maximum(last, 0)
    group = history.group if len(history.group) else np.zeros(1, dtype=np.int32)
    value = history.value if len(history.value) else np.zeros(1, dtype=np.int32)
    places = _core.series.publish(
        people.values,
        np.where(old, group[at], np.int32(-1)),
        np.where(old, people.values if rules.static_values else value[at], np.int32(0)),
        points,
        past=history.groups,
        sets=updates.steps(1)[0],
        colors=rules.colors,
        relax=rules.relax,
        m=rules.m,
        key=rules.key,
    )
    return (
        None if places is None else Grouping(places.offsets, places.rows, places.values, places.donors, places.withheld)
    )
