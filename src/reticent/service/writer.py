"""Group commit: one thread writes for all streams; steps that arrive during a commit go into the next transaction.

A step has two parts. `check` may reject it and changes nothing; `apply` changes an engine and the transaction. If an
`apply` or the commit fails, nothing of the group is stored. The writer then drops every engine involved, which is
restored from the store, and tries the steps one by one, so that only the faulty step fails.
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
# Most steps of a group, so that the first step does not wait too long.
_MAX_STEPS = 128
# Seconds that a group waits for as many steps as the last group had.
_GROUP_WAIT = 0.01
# Seconds without a step after which the writer calls `on_idle`.
_IDLE_SECONDS = 0.5
_NO_RECEIVER = "an answer could not be delivered"


class Owner(Protocol):
    """The object that stores the changes of an engine."""

    def flush(self, tx: Transaction) -> None:
        """Store the changes since the last flush."""

    def after_commit(self) -> None:
        """Run after the commit and its answers."""

    def on_idle(self) -> None:
        """Run when no step has arrived for a while."""


class Step:
    """One change of the store; subclasses may also change an engine."""

    owner: Owner | None = None
    """The object that stores the steps of a group together; None if `apply` stores the change."""

    def __init__(self, apply: Callable[[Transaction], Any]) -> None:
        self._apply = apply

    def check(self) -> None:
        """Reject an invalid step; change nothing."""

    def apply(self, tx: Transaction) -> Any:
        """Make the change and return the answer, which is sent after the commit."""
        return self._apply(tx)

    def on_commit(self) -> None:
        """Run after the commit."""

    def drop(self) -> None:
        """Discard the engine in memory, which may be ahead of the store."""


class Writer:
    """The writing thread; any thread may call `submit`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[tuple[Step, Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reticent-writer", daemon=True)
        self._open = True
        self.groups = 0
        self.steps = 0
        self._thread.start()

    def submit(self, step: Step) -> Future[Any]:
        """Queue a step; the future gets its answer after the commit, or its error."""
        if not self._open:
            raise StateError("The server is stopping.", hint="Send the request again when the server has restarted.")
        future: Future[Any] = Future()
        self._queue.put((step, future))
        return future

    @property
    def waiting(self) -> int:
        """The number of queued steps."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finish the queued steps, then stop."""
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
                    _attempt("the idle work of a stream failed", owner.on_idle, level=logging.WARNING)
                busy = []
                continue
            if item is None:
                return
            group = self._gather(item, size)
            size = len(group)
            self._commit([pair for pair in group if pair[1].set_running_or_notify_cancel()])
            busy = list({id(owner): owner for owner in (*busy, *_owners(group))}.values())

    def _gather(self, first: tuple[Step, Future[Any]], usual: int) -> list[tuple[Step, Future[Any]]]:
        """Return the queued steps; if the last group had several steps, wait briefly for as many.

        A commit costs the same for one step as for ten. A single step does not wait.
        """
        group, until = [first], time.monotonic() + _GROUP_WAIT
        while len(group) < _MAX_STEPS:
            left = until - time.monotonic() if len(group) < usual else 0.0
            try:
                item = self._queue.get(timeout=left) if left > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._queue.put(None)  # stop after this group
                break
            group.append(item)
        return group

    def _commit(self, group: Sequence[tuple[Step, Future[Any]]]) -> None:
        if not group:
            return
        try:
            done = self._apply_group(group)
        except Exception as error:  # noqa: BLE001 - after any error nothing of the group is stored
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
            _attempt("a subscriber could not be notified", step.on_commit)
            _attempt(_NO_RECEIVER, future.set_result, value)
        for owner in _owners(group):
            _attempt("the work after a commit failed", owner.after_commit, level=logging.WARNING)

    def _apply_group(self, group: Sequence[tuple[Step, Future[Any]]]) -> list[tuple[Any, Exception | None]]:
        done: list[tuple[Any, Exception | None]] = []
        with self._store.transaction() as tx:
            for step, _ in group:
                try:
                    step.check()
                except Exception as error:  # noqa: BLE001 - the answer to this step only
                    done.append((None, error))
                    continue
                done.append((step.apply(tx), None))
            for owner in _owners(group):
                owner.flush(tx)
        return done


def _owners(group: Sequence[tuple[Step, Future[Any]]]) -> list[Owner]:
    return list({id(owner): owner for step, _ in group if (owner := step.owner) is not None}.values())


def _attempt(words: str, work: Callable[..., None], *values: Any, level: int = logging.DEBUG) -> None:
    """Run work that follows a commit and log its errors; the commit stays."""
    try:
        work(*values)
    except Exception as error:  # noqa: BLE001 - it must not stop the writer
        LOG.log(level, "%s: %s", words, type(error).__name__)
