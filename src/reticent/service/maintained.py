"""An evolving table behind the API: change batches go into a journal, a publication into the store, with the ledger."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.audit import verify
from reticent.engine import publisher, publisher_class
from reticent.engine.evolving.base import EvolvingPublisher
from reticent.engine.rng import Rng
from reticent.errors import InternalError, StateError
from reticent.release import LedgerEntry
from reticent.release.codec import table_bytes
from reticent.service.problems import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.service.hub import Hub
    from reticent.store import Transaction

# Changes are replayed after a restart; a whole state is stored once their bytes pass this.
_JOURNAL = 8 << 20


class Maintained:
    """One evolving table."""

    def __init__(self, name: str, policy: Policy, hub: Hub) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"evolving:{name}"
        self._hub = hub
        self._lock = threading.Lock()
        self._engine: EvolvingPublisher | None = None
        self._journalled = 0

    @staticmethod
    def probe(policy: Policy) -> None:
        """Refuses a policy under which no evolving table can be kept."""
        publisher(policy, "evolving", policy.evolving.method, rng=Rng.fresh())

    def _restored(self) -> EvolvingPublisher:
        store, method = self._hub.store, self.policy.evolving.method
        kept = store.snapshot(self.publisher)
        if kept is None:
            engine = publisher(self.policy, "evolving", method, rng=Rng(store.key(self.publisher)))
        else:
            engine = publisher_class("evolving", method).restore(self.policy, kept.payload)
        if not isinstance(engine, EvolvingPublisher):
            raise InternalError("An evolving method is not an evolving table.")
        for delta in kept.deltas if kept is not None else ():
            engine.push(pa.ipc.open_stream(delta).read_all())
        self._journalled = sum(map(len, kept.deltas)) if kept is not None else _JOURNAL
        return engine

    def change(self, batch: pa.Table, key: str | None, digest: str) -> dict[str, Any]:
        """Applies a change batch, wholly or not at all; a batch that comes again with its key changes nothing."""
        with self._lock:
            known = self._hub.store.get(self.publisher, "key", key) if key else None
            if known is not None:
                answer = json.loads(known)
                if answer.pop("digest") != digest:
                    raise ServiceError(409, "key", "This idempotency key was used for another batch.", "Use a new key.")
                return dict(answer)
            before = self._engine = self._engine or self._restored()
            try:
                done = _apply(before, batch)
                answer = {**done, "rows": before.counts.rows_in}
                kept = None if key is None else (key, {**answer, "digest": digest})
                self._keep(before, table_bytes(batch), kept)
            except BaseException:
                self._engine = None  # it may be ahead of the store
                raise
            return answer

    def _keep(self, engine: EvolvingPublisher, delta: bytes, answer: tuple[str, dict[str, Any]] | None) -> None:
        # What can be computed before the transaction is: every feed of the server waits for the thread that writes.
        state = engine.snapshot() if self._journalled + len(delta) > _JOURNAL else None

        def store(tx: Transaction) -> None:
            if state is not None:
                tx.put_snapshot(self.publisher, state)
            else:
                tx.append_delta(self.publisher, delta)
            if answer is not None:
                tx.put(self.publisher, "key", answer[0], json.dumps(answer[1]).encode())

        self._hub.write(store)
        self._journalled = 0 if state is not None else self._journalled + len(delta)

    def publish(self, again: bool, finish: Callable[[Transaction, str], None]) -> str:  # noqa: FBT001
        """Publishes the table as it is now; `finish` takes part in the transaction that publishes it."""
        with self._lock:
            engine = self._engine = self._engine or self._restored()
            try:
                (release,) = engine.cut(again=again)
                verdict = verify(self._beside(release), self.policy)
                if not verdict.holds and not again:
                    raise InternalError(
                        f"The judge refuted the release ({', '.join(f.claim for f in verdict.refuted)})."
                    )
                number, state = engine.publications, engine.snapshot()

                def store(tx: Transaction) -> str:
                    ident = self._hub.releases.add(
                        tx, release, verdict, kind="evolving", source=self.name, number=number
                    )
                    tx.put_snapshot(self.publisher, state)
                    self._record(tx, engine, release, number)
                    finish(tx, ident)
                    return ident

                ident = self._hub.write(store)
            except BaseException:
                self._engine = None  # nothing was published: what the engine thinks it published is forgotten
                raise
            self._journalled = 0
            return ident

    def _beside(self, release: Release) -> list[Release]:
        """The releases the judge must see it beside: those before it."""
        earlier = [self._hub.releases.load(doc["id"]) for doc in self._hub.releases.of("evolving", self.name)]
        return [*earlier, release]

    def _record(self, tx: Transaction, engine: EvolvingPublisher, release: Release, number: int) -> None:
        witness = engine.witness
        if witness is None:
            raise StateError("The publication has no witness.", hint="Publish again.")
        entry = LedgerEntry(
            number=number,
            time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            policy_hash=self.policy.hash,
            method=release.method,
            counts=release.counts,
            digest=hashlib.sha256(table_bytes(release.tables["qit"])).hexdigest(),
        )
        tx.record_ledger(self.publisher, entry, witness.persons, witness.groups)

    def status(self) -> dict[str, Any]:
        """Counts; nothing of it is private."""
        with self._lock:
            engine = self._engine = self._engine or self._restored()
            counts = engine.counts
        return {
            "name": self.name,
            "method": self.policy.evolving.method,
            "l": self.policy.l_of("evolving"),
            "rows": counts.rows_in,
            "held": counts.held,
            "publications": engine.publications,
        }


def _apply(engine: EvolvingPublisher, batch: pa.Table) -> dict[str, Any]:
    if "op" in batch.column_names and "op" not in engine.policy.columns:
        return engine.apply(batch).to_dict()
    return engine.insert(batch).to_dict()
