"""A series behind the API: each table sent becomes the next release, or nothing is published."""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.audit import verify
from reticent.engine import publisher, publisher_class
from reticent.engine.rng import Rng
from reticent.engine.series.publisher import SeriesPublisher
from reticent.errors import InternalError
from reticent.release import LedgerEntry
from reticent.release.codec import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.policy import Policy
    from reticent.service.hub import Hub
    from reticent.store import Transaction


class Republished:
    """One series."""

    def __init__(self, name: str, policy: Policy, hub: Hub) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"series:{name}"
        self._hub = hub
        self._lock = threading.Lock()

    @staticmethod
    def probe(policy: Policy) -> None:
        """Refuses a policy under which no series can be published."""
        publisher(policy, "series", policy.series.method, rng=Rng.fresh())

    def _engine(self) -> SeriesPublisher:
        store, model = self._hub.store, self.policy.series.method
        kept = store.snapshot(self.publisher)
        if kept is None:
            engine = publisher(self.policy, "series", model, rng=Rng(store.key(self.publisher)))
        else:
            engine = publisher_class("series", model).restore(self.policy, kept.payload)
        if not isinstance(engine, SeriesPublisher):
            raise InternalError("A series model is not a series engine.")
        return engine

    def publish(self, table: pa.Table, finish: Callable[[Transaction, str], None]) -> str:
        """Publishes a table as the next release; `finish` takes part in the transaction that publishes it."""
        with self._lock:
            engine = self._engine()
            engine.push(table)
            (release,) = engine.cut()
            persons, groups = engine.history.members(engine.releases)
            entry = LedgerEntry(
                number=engine.releases,
                time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
                policy_hash=self.policy.hash,
                method=release.method,
                counts=release.counts,
                digest=hashlib.sha256(to_bytes(release)).hexdigest(),
            )
            ledger = self._hub.store.ledger(self.publisher)
            ledger.record(entry, persons, groups)
            before = [self._hub.releases.load(doc["id"]) for doc in self._hub.releases.of("series", self.name)[-1:]]
            verdict = verify([*before, release], self.policy, ledger=ledger)
            if not verdict.holds:
                raise InternalError(f"The judge refuted the release ({', '.join(f.claim for f in verdict.refuted)}).")

            state = engine.snapshot()

            def store(tx: Transaction) -> str:
                ident = self._hub.releases.add(
                    tx, release, verdict, kind="series", source=self.name, number=engine.releases
                )
                tx.put_snapshot(self.publisher, state)
                tx.record_ledger(self.publisher, entry, persons, groups)
                finish(tx, ident)
                return ident

            return self._hub.write(store)

    def status(self) -> dict[str, Any]:
        """Model and number of releases."""
        return {
            "name": self.name,
            "method": self.policy.series.method,
            "m": self.policy.m,
            "max_risk": self.policy.series.limit,
            "releases": len(self._hub.releases.of("series", self.name)),
        }
