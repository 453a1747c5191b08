"""Publishes a series (the same persons in release after release) from a store.

One transaction stores the release, the history of the series and the ledger entry; then the folder is written. After a crash in between,
the same call with the same data delivers the stored release, because another release would publish the same people twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from reticent.engine import publisher, publisher_class
from reticent.engine.rng import Rng
from reticent.errors import StateError
from reticent.policy import Policy
from reticent.publication.gate import VerifiedRelease, pass_gate
from reticent.publication.publication import Publication, TransactionHook
from reticent.release import Ledger, Release
from reticent.release.codec import from_bytes, table_digest
from reticent.store import OutboxEntry, Transaction


@dataclass(frozen=True, repr=False)
class NextRelease:
    """A release that may be published, and the state of the series after it."""

    verified: VerifiedRelease
    state: bytes
    secret: bytes


def compose(
    table: pa.Table,
    policy: Policy,
    rng: Rng,
    *,
    state: bytes | None = None,
    earlier: Sequence[Release] = (),
    ledger: Ledger | None = None,
    not_covered: tuple[str, ...] = (),
) -> NextRelease:
    """Make the first or next release of a series, without storing it."""
    method = policy.series.method
    if state is None:
        engine = publisher(policy, "series", method, rng=rng)
    else:
        engine = publisher_class("series", method).restore(policy, state)
    engine.push(table)
    (release,) = engine.cut()
    passed = pass_gate(
        release,
        policy,
        "series",
        earlier=earlier,
        ledger=ledger,
        members=engine.members(),
        original=engine.original(),
        events=engine.shown_events(),
        not_covered=not_covered,
    )
    return NextRelease(passed, engine.snapshot(), rng.secret)


class Series(Publication):
    """One series in a store."""

    kind = "series"

    def publish(
        self,
        table: pa.Table,
        *,
        seed: int | None = None,
        first: NextRelease | None = None,
        sent: bool = True,
        hook: TransactionHook | None = None,
    ) -> VerifiedRelease:
        """Publish a table with all current records as the next release.

        The `first` release may have been composed before the store existed. `sent` marks the release as delivered; `hook` runs in the
        transaction that publishes.

        Raises:
            GuaranteeError: the policy cannot be met; nothing was published and the store is unchanged.
        """
        with self.step_lock:
            population = self._population(allow_republication=self.allow_republication)
            persons = population.hash_table_persons(table)
            population.refuse_shared_persons(persons)
            following = (
                self._make_next(table, seed, population.not_covered) if first is None else self._check_first(first)
            )
            ready, position = following.verified.pack(), table_digest(table)
            population.refuse_conflicts(ready.events)

            def step(tx: Transaction) -> VerifiedRelease:
                tx.put_snapshot(self.name, following.state)
                return ready.keep(tx, self.name, population, persons, position=position, sent=sent, hook=hook)

            return self.commit(step)

    def deliver(
        self, table: pa.Table, folder: Path | None, file_format: str, *, seed: int | None, first: NextRelease | None
    ) -> Release:
        """Publish and write the folder, or write the release that a crash left undelivered."""
        return self._deliver(
            folder,
            file_format,
            stored=lambda waiting: _load_same_release(waiting, table),
            publish=lambda: self.publish(table, seed=seed, first=first, sent=False),
        )

    def _make_next(self, table: pa.Table, seed: int | None, words: tuple[str, ...] = ()) -> NextRelease:
        rng = self.rng(self.policy.series.method) if seed is None else Rng.from_seed(seed)
        stored = self.store.snapshot(self.name)
        state = None if stored is None else stored.payload
        ledger = self.store.ledger(self.name)
        return compose(
            table, self.policy, rng, state=state, earlier=self.earlier_releases(), ledger=ledger, not_covered=words
        )

    def _check_first(self, first: NextRelease) -> NextRelease:
        if self.store.key(self.name) != first.secret or self.store.snapshot(self.name) is not None:
            raise StateError("Another process has started this series in the meantime.", hint="Run the command again.")
        digest = publisher_class(self.kind, self.policy.series.method).pin_digest(self.policy)
        if digest:  # the first release was veiled with the secret itself, before the store existed
            self.store.veil_key(digest, key=first.secret)
        return first


def _load_same_release(waiting: OutboxEntry, table: pa.Table) -> Release:
    """Load the release that was stored but not delivered, if it was made from this table."""
    if waiting.position != table_digest(table):
        raise StateError(
            "The last release of this series was stored but not written to its folder.",
            hint="Run the same command with the data of that release first.",
        )
    return from_bytes(waiting.payload)
