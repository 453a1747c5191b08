"""The veil over a series: one veil per person, whose slots move along the kernel from release to release.

Guarantee: given all releases, each slot of a person is the true one with probability exactly 1 / l, for a reader who knows the
    published prior, the published kernel and any number of other persons' records (docs/veil.md).
Not covered: readers who know better than prior or kernel, by the factor they do; what presence or absence says; see
    `reticent.engine.veil.release`.
Cost: linear in the records of a release; 2 l + 12 bytes and a hash per person.
Reference: docs/veil.md.
Differences from the paper: ours; m-distinct is the paper's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from reticent.engine.base import Members, Publisher, Sights, check_batch
from reticent.engine.snapshot import pack, unpack
from reticent.engine.spellings import spelled
from reticent.engine.veil.house import House
from reticent.engine.veil.release import guarantee
from reticent.engine.veil.veiling import Veiling
from reticent.errors import DataError, PolicyError
from reticent.release import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.release import Guarantee, Release


class Veil(Publisher):
    """Publishes the same persons again; what a person missed counts as events, too."""

    kind = "series"
    method = "veil"

    @classmethod
    def pinned(cls, policy: Policy) -> str:
        """The digest of the house."""
        return House.of(policy, cls.kind).digest

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        if policy.person is None:
            raise PolicyError("A series needs to know who is who.", hint="Write person: and the identifier column.")
        self._veiling = Veiling(policy, rng, self.kind)
        self._pending: list[pa.Table] = []
        self._counts = Counts()
        self._members = Members.nobody()
        self._sights: Sights | None = None
        self.releases = 0

    @property
    def counts(self) -> Counts:
        """Rows pushed and not yet cut count as held."""
        rows = sum(batch.num_rows for batch in self._pending)
        return self._counts + Counts(rows_in=rows, held=rows)

    @property
    def guarantee(self) -> Guarantee:
        """What every release claims."""
        return guarantee(self._veiling.house)

    @property
    def metrics(self) -> Mapping[str, float]:
        """The veil has no groups, no counterfeits and no waiting to count."""
        return {}

    def sights(self) -> Sights | None:
        """What the last release shows of each person."""
        return self._sights

    def members(self) -> Members:
        """Whose record stands in which line of the last release."""
        return self._members

    def push(self, batch: pa.Table) -> list[Release]:
        """Takes in part of the table as it is now; nothing is published before `cut`."""
        self._pending.append(check_batch(batch, self.policy))
        return []

    def cut(self) -> list[Release]:
        """Publishes what was pushed as the next release."""
        if not sum(batch.num_rows for batch in self._pending):
            raise DataError("There are no records to publish.", hint="Push the table as it is now, then cut.")
        table = spelled(pa.concat_tables(self._pending, promote_options="permissive"), self.policy)
        names = table.column(str(self.policy.person))
        if names.null_count or pc.count_distinct(names).as_py() < table.num_rows:
            raise DataError(
                f"Column '{self.policy.person}': every record of a release needs a person of its own.",
                hint="Keep one record per person and release, and fill missing identifiers.",
            )
        self.releases += 1
        veiled = self._veiling.veil(table, now=self.releases)
        release = self._veiling.release(veiled, number=self.releases)
        self._members, self._sights = self._veiling.members(veiled, number=self.releases), veiled.sights()
        self._pending, self._counts = [], self._counts + release.counts
        return [release]

    def close(self) -> list[Release]:
        """Publishes what was pushed since the last cut, if anything."""
        return self.cut() if self._pending else []

    def snapshot(self) -> bytes:
        """What is remembered of every person, what is pending, and the keys."""
        tables = {"pending": pa.concat_tables(self._pending, promote_options="permissive")} if self._pending else {}
        state = {"releases": self.releases, "counts": list(vars(self._counts).values())}
        return pack(self.policy, self.rng, state, tables, {"people": self._veiling.people.to_bytes()})

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on after the last release."""
        rng, saved, tables, blobs = unpack(policy, state)
        publisher = cls(policy, rng=rng)
        publisher.releases, publisher._counts = saved["releases"], Counts(*saved["counts"])
        publisher._pending = list(tables.values())
        publisher._veiling.people.load(blobs["people"])
        return publisher
