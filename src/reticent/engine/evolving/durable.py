"""EvolvingTable: an evolving table on a durable store; each change is one transaction.

A change writes the rows it touched and nothing else, so its cost grows with the change and not with the table. A publication is
stored before anyone sees it: after a crash the stored one is delivered, never a second one made. One writer at a time holds
the store's lock; others wait.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from reticent.audit import verify
from reticent.encode import Dictionary
from reticent.engine import publisher_class
from reticent.engine.evolving.base import EvolvingPublisher
from reticent.engine.evolving.sealed import Sealed
from reticent.engine.rng import Rng
from reticent.errors import InternalError, StateError
from reticent.policy import Policy
from reticent.release import LedgerEntry
from reticent.release.codec import digest, from_bytes, table_bytes, table_from, to_bytes
from reticent.store import Store
from reticent.store import evolving as rows_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from reticent.engine.evolving.change import Change
    from reticent.release import Release
    from reticent.store import Transaction

NAME = "evolving"
# Long enough for the changes of others before ours, short enough to notice one that hangs.
WAIT = 600.0


@dataclass(frozen=True)
class Published:
    """A publication as it was delivered; `recovered` when it had been stored before a crash."""

    release: Release
    recovered: bool


class EvolvingTable:
    """Insert, delete, update and publish; everything is on disk when a call returns.

    Use `create` once, then `open`:

        with EvolvingTable.open("store.db") as table:
            table.insert(batch)
            table.publish("release-1")
    """

    def __init__(self, store: Store, policy: Policy, engine: EvolvingPublisher) -> None:
        self._store, self.policy, self.engine = store, policy, engine
        self._known = {name: len(words) for name, words in engine.records.words.items()}
        self._epochs = len(getattr(engine, "epochs", ()))

    @classmethod
    def create(cls, where: str | os.PathLike[str], policy: Policy, *, seed: int | None = None) -> None:
        """Makes a store for an empty table under a policy; refuses one that holds a table already."""
        rng = Rng.fresh() if seed is None else Rng.from_seed(seed)
        _engine(policy, rng)  # refuses a policy that cannot work, before anything is written
        about = {"policy": policy.to_dict(), "base": str(policy.base.resolve()), "seed": seed}
        with Store.open(where) as store:
            if NAME in store.publishers():
                raise StateError(
                    "The store holds an evolving table already.", hint="Go on with it, or name a new store."
                )
            store.register(NAME, policy_hash=policy.hash)
            with store.lock(NAME, wait=WAIT), store.transaction() as tx:
                tx.put(NAME, NAME, "about", json.dumps(about).encode())

    @staticmethod
    def policy_of(where: str | os.PathLike[str]) -> Policy:
        """The policy a table was begun under, without loading the table."""
        with Store.open(where, create=False) as store:
            return _about(store)[0]

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, where: str | os.PathLike[str], *, wait: float = WAIT, touching: pa.Table | None = None
    ) -> Iterator[Self]:
        """Opens the table as its one writer; waits at most `wait` seconds to become it.

        Args:
            where: the store.
            wait: seconds.
            touching: the one change to be made. A method whose changes need only the records they name then loads no
                others, so that a small change to a large table is quick.
        """
        with Store.open(where, create=False) as store:
            policy, seed = _about(store)  # for life, so it may be read before the lock
            with store.lock(NAME, wait=wait):
                rng = Rng(store.key(NAME)) if seed is None else Rng.from_seed(seed)
                yield cls(store, policy, _load(store, policy, rng, touching))

    # -- changes ---------------------------------------------------------------------------------------------------

    def insert(self, batch: pa.Table, *, again: bool = True) -> Change:
        """Adds records, in one transaction; `again=False` refuses those that the last change has brought already."""
        return self._durably(lambda: self.engine.insert(batch), None if again else self._new(batch))

    def delete(self, ids: pa.Array | pa.ChunkedArray | Sequence[Any], *, by: str | None = None) -> Change:
        """Removes records by person or record id, in one transaction."""
        return self._durably(lambda: self.engine.delete(ids, by=by))

    def update(self, batch: pa.Table) -> Change:
        """Replaces records, in one transaction."""
        return self._durably(lambda: self.engine.update(batch))

    def apply(self, batch: pa.Table, *, again: bool = True) -> Change:
        """Applies a change feed, in one transaction; `again=False` refuses the feed that the last change was."""
        return self._durably(lambda: self.engine.apply(batch), None if again else self._new(batch))

    def _new(self, batch: pa.Table) -> str:
        """The digest of a change that is not the last one once more, as when a command is repeated after a crash."""
        given = digest(batch)
        if self._store.get(NAME, NAME, "last") == given.encode():
            raise StateError(
                "The last change of this table was this very file.",
                hint="Nothing was changed now. If the same records are to come in once more, add --again.",
            )
        return given

    def _durably(self, work: Callable[[], Change], given: str | None = None) -> Change:
        with self._or_reload():
            change = work()
            with self._store.transaction() as tx:
                rows_of.remove(tx, NAME, change.removed.tolist())
                self._write(tx, change.written)
                tx.put(NAME, NAME, "last", (given or "").encode())
        self._settled()
        return change

    # -- publication -----------------------------------------------------------------------------------------------

    def publish(self, folder: str | os.PathLike[str], *, again: bool = False, form: str = "csv") -> Published:
        """Publishes the table as it is now, or delivers the publication that a crash kept from being delivered."""
        waiting = next(self._store.unsent(NAME), None)
        if waiting is None:
            release, number = self._make(again=again)
        else:
            release, number = from_bytes(waiting.payload), waiting.number
        release.to_dir(Path(folder), format=form)
        with self._store.transaction() as tx:
            tx.mark_sent(NAME, number)
            tx.forget_sent(NAME, number)
        return Published(release, waiting is not None)

    def _make(self, *, again: bool) -> tuple[Release, int]:
        engine = self.engine
        if engine.publications and not engine.safe_again and not again:
            engine.cut()  # raises, with its reason
        with self._or_reload():
            release, moved = engine.prepare()
            verdict = verify([release], self.policy)
            if not verdict.holds:
                raise InternalError(f"The judge refuted the release ({', '.join(f.claim for f in verdict.refuted)}).")
            payload = to_bytes(release)
            with self._store.transaction() as tx:
                self._write(tx, moved)
                self._record(tx, release, payload)
                number = tx.put_outbox(NAME, "release", payload)
        self._settled()
        return release, number

    def _record(self, tx: Transaction, release: Release, payload: bytes) -> None:
        witness = self.engine.witness
        if witness is None:
            raise InternalError("A publication left no witness.")
        entry = LedgerEntry(
            number=self.engine.publications,
            time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            policy_hash=release.policy_hash,
            method=release.method,
            counts=release.counts,
            digest=hashlib.sha256(payload).hexdigest(),
        )
        tx.record_ledger(NAME, entry, witness.persons, witness.groups)
        tx.put(NAME, "facts", str(entry.number), witness.facts.astype("<u8").tobytes())

    def status(self) -> dict[str, Any]:
        """How the table stands, in plain values."""
        counts, engine = self.engine.counts, self.engine
        return {
            "method": engine.method,
            "l": engine.l,
            "records": counts.rows_in,
            "publishable": counts.published,
            "held": counts.held,
            "changes": engine.step - engine.publications,
            "publications": engine.publications,
            "undelivered": sum(1 for _ in self._store.unsent(NAME)),
            "safe_again": engine.safe_again,
            "policy_hash": self.policy.hash,
        }

    # -- inside ----------------------------------------------------------------------------------------------------

    def _write(self, tx: Transaction, rows: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        """The touched rows, new words, and the small state."""
        records = self.engine.records
        fixed = np.concatenate([records.codes[rows].view(np.uint8), records.hashes[rows].view(np.uint8)], axis=1)
        classes, seats = records.classes[rows].tolist(), records.seats[rows].tolist()
        written = (
            rows_of.Row(row, str(records.persons[row]), records.names[row], fixed[i].tobytes(), classes[i], seats[i])
            for i, row in enumerate(rows.tolist())
        )
        rows_of.write(tx, NAME, written)
        for name, words in records.words.items():
            if len(words) > self._known[name]:
                rows_of.add_words(tx, NAME, name, self._known[name], _pack(words.values.slice(self._known[name])))
        state = self.engine.extra()
        if len(state.get("epochs", ())) > self._epochs:
            tx.put(NAME, NAME, "epochs", json.dumps(state["epochs"]).encode())
        counts = self.engine.counts
        small = {k: v for k, v in state.items() if k != "epochs"} | {"records": counts.rows_in, "held": counts.held}
        tx.put(NAME, NAME, "state", json.dumps(small).encode())

    def _settled(self) -> None:
        self._known = {name: len(words) for name, words in self.engine.records.words.items()}
        self._epochs = len(getattr(self.engine, "epochs", ()))

    @contextlib.contextmanager
    def _or_reload(self) -> Iterator[None]:
        """What could not be stored has not happened: memory goes back to what the store says."""
        step = self.engine.step
        try:
            yield
        except BaseException:
            if self.engine.step != step:  # otherwise it was refused before anything was touched
                self.engine = _load(self._store, self.policy, self.engine.rng)
                self._settled()
            raise


def _engine(policy: Policy, rng: Rng) -> EvolvingPublisher:
    engine = publisher_class("evolving", policy.evolving.method)(policy, rng=rng)
    if not isinstance(engine, EvolvingPublisher):
        raise InternalError("An evolving method is of another kind.")
    return engine


def _about(store: Store) -> tuple[Policy, int | None]:
    if NAME not in store.publishers():
        raise StateError("The store holds no evolving table.", hint="Run `reticent evolve init` first.")
    about = json.loads(store.get(NAME, NAME, "about") or b"{}")
    if not about:
        raise StateError(
            "The evolving table was not set up completely.", hint="Make a new store with `reticent evolve init`."
        )
    policy = Policy.from_dict(about["policy"], base=about["base"])
    if policy.hash != store.policy_hash(NAME):
        raise StateError(
            "A file that the policy names has changed since the table was begun.",
            hint="Restore it; a table keeps its policy for life.",
        )
    return policy, about["seed"]


def _load(store: Store, policy: Policy, rng: Rng, touching: pa.Table | None = None) -> EvolvingPublisher:
    """The table as the last transaction left it, or the part that a change concerns."""
    engine = _engine(policy, rng)
    part = touching is not None and engine.partial
    found = _concerned(store, engine, touching) if part else rows_of.read(store, NAME)
    records = engine.records
    for name in records.columns:
        parts = [_unpack(part) for part in rows_of.read_words(store, NAME, name)]
        if parts:
            records.words[name] = Dictionary(pa.concat_arrays(parts))
    rows = np.array([row.row for row in found], dtype=np.uint32)
    names = [str(r.name) for r in found] if engine.name else None
    records.load(rows, [r.person for r in found], names, top=rows_of.top(store, NAME) if part else None)
    if found:
        width = 4 * len(records.columns)
        fixed = np.frombuffer(b"".join(bytes(row.fixed) for row in found), np.uint8).reshape(len(found), width + 24)
        records.codes[rows] = np.ascontiguousarray(fixed[:, :width]).view(np.int32)
        records.hashes[rows] = np.ascontiguousarray(fixed[:, width:]).view(np.uint64)
        records.classes[rows] = [row.group for row in found]
        records.seats[rows] = [row.seat for row in found]
    state = json.loads(store.get(NAME, NAME, "state") or b"{}")
    if state:
        engine.resume(state | {"epochs": json.loads(store.get(NAME, NAME, "epochs") or b"[]")})
    if part and state and isinstance(engine, Sealed):
        engine.overlook(unseen=state["records"] - len(found), held=state["held"])
    return engine


def _concerned(store: Store, engine: EvolvingPublisher, change: pa.Table) -> list[rows_of.Row]:
    """The stored records that a change names, by person or by record id."""
    columns = change.column_names
    person = engine.policy.person if engine.policy.person in columns or change.num_columns != 1 else columns[0]
    persons, names = (
        [i for i in change.column(column).cast(pa.string()).to_pylist() if i is not None] if column in columns else []
        for column in (person, engine.name)
    )
    return rows_of.find(store, NAME, persons=persons, names=names)


def _pack(values: pa.Array) -> bytes:
    return table_bytes(pa.table({"value": values}))


def _unpack(payload: bytes) -> pa.Array:
    return table_from(payload).column("value").combine_chunks()
