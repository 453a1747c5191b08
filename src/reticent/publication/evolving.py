"""Publishes an evolving table (insertions, deletions, corrections) from a store. Each change is one transaction.

A change writes only the rows it touches, so its cost grows with the change and not with the table. A publication is stored before
it is delivered: after a crash, the stored publication is delivered and no second one is made.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from reticent.encode import Dictionary
from reticent.engine import publisher, publisher_class
from reticent.engine.evolving.change import is_feed
from reticent.engine.rng import Rng
from reticent.errors import StateError
from reticent.policy import Policy
from reticent.publication.gate import VerifiedRelease, pass_gate
from reticent.publication.publication import Commit, Publication, TransactionHook
from reticent.release import Release
from reticent.release.codec import from_bytes, table_bytes, table_digest, table_from_bytes
from reticent.store import evolving as rows_of
from reticent.store.database import truncate_log
from reticent.store.erase import forget_words

if TYPE_CHECKING:
    from reticent.engine.evolving.base import EvolvingPublisher
    from reticent.engine.evolving.change import Change
    from reticent.store import Store, Transaction

    Rows = np.ndarray[Any, np.dtype[np.uint32]]
    ChangeHook = Callable[[Transaction, Change], None]

LAST_CHANGE, STATE = "last", "state"


class Evolving(Publication):
    """One evolving table in a store. Every change is on disk when a call returns."""

    kind = "evolving"

    def __init__(
        self,
        store: Store,
        policy: Policy,
        *,
        name: str = "",
        commit: Commit | None = None,
        rng: Rng | None = None,
        in_memory: bool = True,
    ) -> None:
        """Open the table in a store under its policy. `rng` replaces the store's key in tests only.

        With `in_memory`, the table stays in memory between calls. Otherwise a change loads only the records it names, if the method
        allows it, so that a small change to a large table is fast.
        """
        super().__init__(store, policy, name=name, commit=commit)
        self._rng = rng or self.rng(policy.evolving.method)
        self._whole = in_memory
        self._engine: EvolvingPublisher | None = None
        self._known: dict[str, int] = {}
        self._state: dict[str, Any] = {}

    @property
    def engine(self) -> EvolvingPublisher:
        """The engine with the whole table, as of the last transaction."""
        if self._engine is None:
            self._engine = self._load(None)
        return self._engine

    # -- changes ---------------------------------------------------------------------------------------------------

    def insert(self, batch: pa.Table, *, again: bool = True, hook: ChangeHook | None = None) -> Change:
        """Add records in one transaction. `again=False` refuses a batch that is identical to the last change."""
        return self._change(batch, lambda engine: engine.insert(batch), again=again, hook=hook)

    def delete(self, ids: pa.Array | pa.ChunkedArray | Sequence[Any], *, by: str | None = None) -> Change:
        """Delete records by person or record id in one transaction."""
        column = by or self.policy.evolving.record or str(self.policy.person)
        return self._change(pa.table({column: ids}), lambda engine: engine.delete(ids, by=by))

    def update(self, batch: pa.Table) -> Change:
        """Replace records in one transaction."""
        return self._change(batch, lambda engine: engine.update(batch))

    def apply(self, batch: pa.Table, *, again: bool = True, hook: ChangeHook | None = None) -> Change:
        """Apply a change feed in one transaction. `again=False` refuses a feed that is identical to the last change."""
        return self._change(batch, lambda engine: engine.apply(batch), again=again, hook=hook)

    def push(self, batch: pa.Table, *, hook: ChangeHook | None = None) -> Change:
        """Apply a batch: a change feed if it has a column `op`, insertions otherwise."""
        return (self.apply if is_feed(batch, self.policy) else self.insert)(batch, hook=hook)

    def _change(
        self,
        batch: pa.Table,
        work: Callable[[EvolvingPublisher], Change],
        *,
        again: bool = True,
        hook: ChangeHook | None = None,
    ) -> Change:
        with self.step_lock:
            last = b"" if again else self._digest_new_change(batch)
            with self._rollback_on_error(self.engine if self._whole else self._load(batch)) as engine:
                engine.recall(rows_of.read_person_states(self.store, self.name, engine.keys_to_recall(batch)))
                change = work(engine)

                codes, forgotten = np.concatenate([*change.removed_codes, engine.records.codes[:0]]), list[str]()
                gone = engine.records.unused_codes(codes) if len(codes) and not engine.records.not_loaded else None

                def step(tx: Transaction) -> None:
                    nonlocal forgotten
                    rows_of.remove(tx, self.name, change.removed.tolist())
                    self._write(tx, engine, change.written)
                    rows_of.write_person_states(tx, self.name, engine.memories(change.persons))
                    if len(codes):
                        forgotten = forget_words(tx, self.name, engine.records.columns, codes, gone)
                    tx.put(self.name, self.kind, LAST_CHANGE, last)
                    if hook is not None:
                        hook(tx, change)

                self.commit(step)
            if len(codes):
                truncate_log(self.store.engine)
            self._read_words(engine, forgotten)  # the engine still has the deleted words
            return change

    def _digest_new_change(self, batch: pa.Table) -> bytes:
        """Return the digest of a change. Refuse the last change once more, as when a command is repeated after a crash."""
        last = table_digest(batch).encode()
        if self.store.get(self.name, self.kind, LAST_CHANGE) == last:
            raise StateError(
                "This file was already applied as the last change of this table. Nothing was changed.",
                hint="Add --again to apply the same records once more.",
            )
        return last

    # -- publication -----------------------------------------------------------------------------------------------

    def publish(
        self, *, again: bool = False, sent: bool = True, hook: TransactionHook | None = None
    ) -> VerifiedRelease:
        """Publish the table as it is now. `again` tries a method made for one publication; then the verifier decides.

        `sent` marks the release as delivered; `hook` runs in the transaction that publishes.

        Raises:
            GuaranteeError: the policy cannot be met; nothing was published and the table is unchanged.
        """
        with self.step_lock, self._rollback_on_error(self.engine) as engine:
            (release,) = engine.cut(again=again)
            population = self._population(allow_republication=self.allow_republication)
            persons = population.hash_persons(
                pa.array([name for name in engine.records.persons if name is not None], pa.string())
            )
            population.refuse_shared_persons(persons)
            population.refuse_conflicts(engine.shown_events())
            passed = pass_gate(
                release,
                self.policy,
                self.kind,
                earlier=self.earlier_releases(),
                ledger=self.store.ledger(self.name),
                members=engine.members(),
                events=engine.shown_events(),
                not_covered=population.not_covered,
            ).pack()

            def step(tx: Transaction) -> VerifiedRelease:
                self._write_state(tx, engine)
                return passed.keep(tx, self.name, population, persons, sent=sent, hook=hook)

            return self.commit(step)

    def deliver(self, folder: Path | None, file_format: str, *, again: bool) -> Release:
        """Publish and write the folder, or write the release that a crash left undelivered."""
        return self._deliver(
            folder,
            file_format,
            stored=lambda waiting: from_bytes(waiting.payload),
            publish=lambda: self.publish(again=again, sent=False),
        )

    def status(self) -> dict[str, Any]:
        """Return the state of the table in counts. They contain no cell of the table."""
        method = self.policy.evolving.method
        state = {"records": 0, "withheld": 0, "step": 0, "publications": 0} | self._read_state()
        return {
            "method": method,
            "l": self.policy.l_of(self.kind),
            "records": state["records"],
            "publishable": state["records"] - state["withheld"],
            "withheld": state["withheld"],
            "changes": state["step"] - state["publications"],
            "publications": state["publications"],
            "undelivered": sum(1 for _ in self.store.iter_undelivered_batches(self.name)),
            "safe_again": cast("type[EvolvingPublisher]", publisher_class(self.kind, method)).can_republish,
            "policy_hash": self.policy.hash,
        }

    # -- inside ----------------------------------------------------------------------------------------------------

    def _write(self, tx: Transaction, engine: EvolvingPublisher, rows: Rows) -> None:
        """Write the touched rows, the new words and the changed parts of the state."""
        records = engine.records
        fixed = np.concatenate(
            [records.codes[rows].view(np.uint8), records.hashes[rows].view(np.uint8), records.memories[rows]], axis=1
        )
        width, content = fixed.shape[1], fixed.tobytes()
        written = (
            (row, str(records.persons[row]), records.record_ids[row], content[i * width : (i + 1) * width], group)
            for i, (row, group) in enumerate(zip(rows.tolist(), records.classes[rows].tolist(), strict=True))
        )
        rows_of.write(tx, self.name, written)
        for name, words in records.words.items():
            first = self._known[name]
            if len(words) > first:
                values = pa.table({"value": words.values.slice(first)})
                rows_of.add_words(tx, self.name, name, first, table_bytes(values))
        self._write_state(tx, engine)

    def _write_state(self, tx: Transaction, engine: EvolvingPublisher) -> None:
        for key, value in engine.extra_state().items():
            if self._state.get(key) != value:
                tx.put(self.name, STATE, key, json.dumps(value).encode())

    @contextlib.contextmanager
    def _rollback_on_error(self, engine: EvolvingPublisher) -> Iterator[EvolvingPublisher]:
        """Run a step of an engine. If the step cannot be stored, the engine is loaded again from the store."""
        step = engine.step
        try:
            yield engine
        except BaseException:
            if engine.step != step:  # otherwise the change was refused before the engine changed
                self._engine = None
            raise
        self._engine = engine if self._whole else None
        self._update_cache(engine, engine.extra_state())

    def _update_cache(self, engine: EvolvingPublisher, state: dict[str, Any]) -> None:
        """Remember what the store has, so that the next step writes only what is new."""
        self._known = {name: len(words) for name, words in engine.records.words.items()}
        self._state = state

    def _read_state(self) -> dict[str, Any]:
        return {key: json.loads(value) for key, value in self.store.items(self.name, STATE).items()}

    def _load(self, change: pa.Table | None) -> EvolvingPublisher:
        """Load the table as of the last transaction, or only the records that a change names."""
        engine = cast(
            "EvolvingPublisher", publisher(self.policy, self.kind, self.policy.evolving.method, rng=self._rng)
        )
        named = None if change is None else engine.ids_to_load(change)
        if named is None:
            rows = rows_of.read(self.store, self.name)
        else:
            rows = rows_of.find(self.store, self.name, persons=named.persons, names=named.records)
            if others := {row.person for row in rows} - set(named.persons):  # named by record id only
                persons = [*named.persons, *others]
                rows = rows_of.find(self.store, self.name, persons=persons, names=named.records)
        self._read_words(engine, engine.records.columns)
        _load_records(engine, rows, top=None if named is None else rows_of.next_row_number(self.store, self.name))
        state = self._read_state()
        if state:
            engine.resume(state)
        self._update_cache(engine, state)
        return engine

    def _read_words(self, engine: EvolvingPublisher, columns: Sequence[str]) -> None:
        for column in columns:
            parts = [
                table_from_bytes(part).column("value") for part in rows_of.read_words(self.store, self.name, column)
            ]
            if parts:
                engine.records.words[column] = Dictionary(pa.concat_arrays([part.combine_chunks() for part in parts]))


def _load_records(engine: EvolvingPublisher, stored: list[rows_of.StoredRecord], top: int | None) -> None:
    records, width = engine.records, 4 * len(engine.records.columns)
    whole = width + 24 + records.memories.shape[1]
    rows = np.array([row.row for row in stored], dtype=np.uint32)
    names = [str(row.name) for row in stored] if engine.record_column else None
    records.load(rows, [row.person for row in stored], names, top=top)
    if stored:
        fixed = np.frombuffer(b"".join(bytes(row.fixed) for row in stored), np.uint8).reshape(len(stored), whole)
        records.codes[rows] = np.ascontiguousarray(fixed[:, :width]).view(np.int32)
        records.hashes[rows] = np.ascontiguousarray(fixed[:, width : width + 24]).view(np.uint64)
        records.memories[rows] = fixed[:, width + 24 :]
        records.classes[rows] = [row.group for row in stored]
