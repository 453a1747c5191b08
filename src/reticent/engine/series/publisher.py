"""What engines of a series in groups share: group the records of the next release, keep to the risk limit, remember."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Float32s
from reticent.engine.base import Members, refuse_group
from reticent.engine.rng import Rng
from reticent.engine.series.base import SeriesPublisher
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.history import History
from reticent.engine.series.quasi import attributes, points, traits
from reticent.engine.series.sug import People, Risk, within_limit
from reticent.engine.series.tables import changes, distribution, reasons, release_tables
from reticent.engine.snapshot import pack
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.updates import Updates, updates_of
from reticent.release import Counts, Guarantee, Release, person_hashes
from reticent.release.wording import AGAINST, SERIES, not_covered


class GroupPublisher(SeriesPublisher):
    """Publishes persons in groups, whose values later releases cannot rule out."""

    still: ClassVar[bool] = False
    not_covered: ClassVar[tuple[str, ...]] = not_covered(*SERIES)

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        _check(policy)
        self.history = History()
        self._domain: tuple[str | None, ...] = ()
        updates_of(policy, policy.sensitive[0], still=self.still)

    @property
    def guarantee(self) -> Guarantee:
        """What every release claims beside those before it."""
        return Guarantee(self._claims(), AGAINST["series"], self.not_covered)

    def members(self) -> Members:
        """Who stood in which group of the last release."""
        return Members(*self.history.members(self.releases))

    @property
    def releases(self) -> int:
        """How many releases were published."""
        return self.history.releases

    def _publish(self, table: pa.Table) -> Release:
        people, updates = self._read(table)
        quasi = attributes(table, self.policy)
        where = points(quasi, table.num_rows)
        grouping, after, risk = self._limit(people, updates, self._group(people, updates, where))
        grouping = grouping.hidden(where)
        counts = self._count(grouping, table.num_rows)
        explain = {
            "release": after.releases,
            "groups": len(grouping),
            "changes": changes(self.history, people),
            "held": reasons(grouping),
            "risk": distribution(risk),
            "updates": {"closed": updates.closed, "stayed": updates.stayed},
        }
        release = Release(
            kind=self.kind,
            shape="m-distinct",
            method=self.method,
            tables=release_tables(table, self.policy, quasi, grouping, updates),
            guarantee=self.guarantee,
            counts=counts,
            policy_hash=self.policy.hash,
            metrics=self._metrics(grouping, risk),
            explain=explain,
            seeded=self.rng.seeded,
        )
        self.history, self._domain, self._figures = after, updates.values, dict(release.metrics)
        return release

    def _read(self, table: pa.Table) -> tuple[People, Updates]:
        names, column = table.column(str(self.policy.person)), self.policy.sensitive[0]
        shown = table.column(column).cast(pa.string()).combine_chunks().dictionary_encode()
        words = shown.dictionary.to_pylist() + ([None] if shown.null_count else [])
        updates = updates_of(self.policy, column, (*self._domain, *words), still=self.still)
        lookup = np.array([updates.codes[word] for word in words], dtype=np.int32)
        codes = pc.fill_null(shown.indices, len(words) - 1).to_numpy(zero_copy_only=False)
        hashes = person_hashes(names.cast(pa.string()).to_pylist(), self.rng.key("series persons"))
        seen = traits(table, self.policy, self.rng.key("series traits"))
        return People(hashes, seen, lookup[codes]), updates

    @abstractmethod
    def _group(self, people: People, updates: Updates, where: Float32s) -> Grouping:
        """Groups the records of the next release."""

    def _limit(self, people: People, updates: Updates, grouping: Grouping) -> tuple[Grouping, History, Risk]:
        return within_limit(self.history, updates, people, grouping, self.policy.series.limit)

    def _claims(self) -> dict[str, Any]:
        return {self.method: self.policy.m, "max_risk": self.policy.series.limit}

    def _key(self, purpose: str) -> bytes:
        return self.rng.key(f"series {purpose} {self.history.releases + 1}")

    def _count(self, grouping: Grouping, rows: int) -> Counts:
        published = int((grouping.row >= 0).sum())
        share = (rows - published) / rows
        if published == 0 or share > self.policy.series.max_held:
            raise GuaranteeError(
                f"{rows - published:,} of {rows:,} records would have to be held back ({share:.0%}); nothing was published.",
                hint="Raise series.max_risk or series.m, or allow more with series.max_held.",
            )
        return Counts(rows_in=rows, published=published, held=rows - published)

    def _metrics(self, grouping: Grouping, risk: Risk) -> dict[str, float]:
        return {
            "counterfeits": float((grouping.row < 0).sum()),
            "counterfeits_per_group": float((grouping.row < 0).sum() / len(grouping)),
            "max_risk": float(risk.worst.max()),
            "average_class_size": float(len(grouping.row) / len(grouping)),
        }

    def snapshot(self) -> bytes:
        """History, domain, what is pending, and the key."""
        state, pending = self._state()
        domain = pa.table({"domain": pa.array(self._domain, type=pa.string())})
        tables = self.history.to_tables() | pending | {"domain": domain}
        return pack(self.policy, self.rng, state | {"metrics": self._figures}, tables)

    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], _: dict[str, bytes]) -> None:
        self.history, self._figures = History.from_tables(tables), saved["metrics"]
        self._domain = tuple(tables["domain"].column("domain").to_pylist())


def _check(policy: Policy) -> None:
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"A series needs exactly one sensitive column; the policy has {len(policy.sensitive)}.",
            hint="Give one column the role sensitive.",
        )
    refuse_group(policy)
