"""Group commit: one thread writes for all streams; what arrives while it commits goes into the next transaction.

A step has two halves. `check` may refuse it and changes nothing; `apply` changes an engine and the transaction. When an
`apply` fails, or the commit does, nothing of the group is stored: every engine touched is dropped, to be built again
from the store, and the steps are tried one by one, so that only the one at fault fails.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from reticent.errors import StateError
from reticent.store import Store, Transaction

LOG = logging.getLogger(__name__)
# A group is closed at this many steps, so that the first of them does not wait for ever.
_MAX_STEPS = 128
# Seconds that a group waits for as many steps as the last one had.
_GROUP_WAIT = 0.01
# Seconds without a step after which keepers may do what need not be done at every commit.
_IDLE_SECONDS = 0.5
_NO_RECEIVER = "an answer found no taker"


class Owner(Protocol):
    """An engine's keeper."""

    def flush(self, tx: Transaction) -> None:
        """Stores what was applied since the last time."""

    def after_commit(self) -> None:
        """Called when it is on disk and everyone has their answer."""

    def on_idle(self) -> None:
        """Called when nothing has come for a while."""


class Step:
    """One change of the store; of an engine too where a class of its own says so."""

    owner: Owner | None = None
    """Who stores the steps of a group together; None when `apply` stores it."""

    def __init__(self, apply: Callable[[Transaction], Any]) -> None:
        self._apply = apply

    def check(self) -> None:
        """Refuses what cannot be done; changes nothing."""

    def apply(self, tx: Transaction) -> Any:
        """Does it; the value is the answer, given once it is on disk."""
        return self._apply(tx)

    def on_commit(self) -> None:
        """Called once the change is on disk."""

    def drop(self) -> None:
        """Forgets the engine in memory, which may be ahead of the store."""


class Writer:
    """The thread; `submit` from anywhere."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[tuple[Step, Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reticent-writer", daemon=True)
        self._open = True
        self.groups = 0
        self.steps = 0
        self._thread.start()

    def submit(self, step: Step) -> Future[Any]:
        """Queues a step; the future holds its answer when it is on disk, or its error."""
        if not self._open:
            raise StateError("The server is stopping.", hint="Send it again when it is back.")
        future: Future[Any] = Future()
        self._queue.put((step, future))
        return future

    @property
    def waiting(self) -> int:
        """Steps that are queued, and not on disk yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finishes what is queued, then stops."""
        self._open = False
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        size, busy = 1, list[Owner]()
        while True:
            try:
                item = self._queue.get(timeout=_IDLE_SECONDS if busy else None)
            except queue.Empty:
                for owner in busy:
                    _attempt("what follows a commit failed", owner.on_idle, level=logging.WARNING)
                busy = []
                continue
            if item is None:
                return
            group = self._gather(item, size)
            size = len(group)
            self._commit([pair for pair in group if pair[1].set_running_or_notify_cancel()])
            busy = list({id(owner): owner for owner in (*busy, *_owners(group))}.values())

    def _gather(self, first: tuple[Step, Future[Any]], usual: int) -> list[tuple[Step, Future[Any]]]:
        """All that is queued; where the last group had several steps, a short while is waited for as many again.

        A commit costs the same for one step as for ten, and who comes alone waits for nobody.
        """
        group, until = [first], time.monotonic() + _GROUP_WAIT
        while len(group) < _MAX_STEPS:
            left = until - time.monotonic() if len(group) < usual else 0.0
            try:
                item = self._queue.get(timeout=left) if left > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._queue.put(None)  # the last of all: what came before it is still done
                break
            group.append(item)
        return group

    def _commit(self, group: Sequence[tuple[Step, Future[Any]]]) -> None:
        if not group:
            return
        try:
            done = self._apply_group(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing of the group was stored
            for step, _ in group:
                step.drop()
            if len(group) == 1:
                _attempt(_NO_RECEIVER, group[0][1].set_exception, error)
                return
            LOG.warning("a group of %d steps failed with %s; trying them one by one", len(group), type(error).__name__)
            for pair in group:
                self._commit([pair])
            return
        self.groups += 1
        self.steps += len(group)
        for (step, future), (value, refused) in zip(group, done, strict=True):
            if refused is not None:
                _attempt(_NO_RECEIVER, future.set_exception, refused)
                continue
            _attempt("a follower could not be told", step.on_commit)
            _attempt(_NO_RECEIVER, future.set_result, value)
        for owner in _owners(group):
            _attempt("what follows a commit failed", owner.after_commit, level=logging.WARNING)

    def _apply_group(self, group: Sequence[tuple[Step, Future[Any]]]) -> list[tuple[Any, Exception | None]]:
        done: list[tuple[Any, Exception | None]] = []
        with self._store.transaction() as tx:
            for step, _ in group:
                try:
                    step.check()
                except Exception as error:  # noqa: BLE001 - an answer for this step alone
                    done.append((None, error))
                    continue
                done.append((step.apply(tx), None))
            for owner in _owners(group):
                owner.flush(tx)
        return done


def _owners(group: Sequence[tuple[Step, Future[Any]]]) -> list[Owner]:
    return list({id(owner): owner for step, _ in group if (owner := step.owner) is not None}.values())


def _attempt(words: str, work: Callable[..., None], *values: Any, level: int = logging.DEBUG) -> None:
    """Does what comes after a commit; the change stands, whatever becomes of it."""
    try:
        work(*values)
    except Exception as error:  # noqa: BLE001 - it must not stop the writer
        LOG.log(level, "%s: %s", words, type(error).__name__)
