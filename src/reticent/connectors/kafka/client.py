"""Call the Kafka client with our own deadlines, because the client's timeouts do not always work.

librdkafka can wait forever in `send_offsets_to_transaction`, whatever its timeout. When the coordinator of the group
goes away, the client drops the broker's handle but keeps waiting for it (its issues 5456 and 5511). So each call runs
in a thread. A call that misses its deadline is abandoned together with its client, and the broker aborts the
transaction.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from confluent_kafka import KafkaException

from reticent.errors import ConnectorError

LOG = logging.getLogger(__name__)
T = TypeVar("T")
CALL_TIMEOUT = 5.0
"""Timeout in seconds that is passed to the client for a single call."""
_DEADLINE = CALL_TIMEOUT + 3.0
_MAX_HUNG = 32
_hung_threads: list[threading.Thread] = []


class SessionLostError(Exception):
    """The consumer and the producer no longer work; new ones continue from the committed offsets."""


class HungError(SessionLostError):
    """A call did not return: its client must not be used again, not even to close it."""


def call_with_deadline(call: Callable[[], T], name: str) -> T:
    """Return the result of a call; if it misses the deadline, abandon the call and the session. The log uses `name`."""
    done: queue.SimpleQueue[tuple[bool, T | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((True, call()))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            done.put((False, error))

    _hung_threads[:] = [thread for thread in _hung_threads if thread.is_alive()]
    if len(_hung_threads) >= _MAX_HUNG:
        raise ConnectorError("The Kafka client has hung too often.", hint="Start the command again; no record is lost.")
    thread = threading.Thread(target=work, name="reticent-kafka", daemon=True)
    thread.start()
    try:
        succeeded, result = done.get(timeout=_DEADLINE)
    except queue.Empty:
        _hung_threads.append(thread)
        raise HungError(f"{name} did not return") from None
    if not succeeded:
        raise result  # type: ignore[misc]
    return result  # type: ignore[return-value]


@contextlib.contextmanager
def pause_gc() -> Iterator[None]:
    """Pause garbage collection: with thousands of messages it costs more than reading them and frees nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def retry_call(call: Callable[[], None], name: str, seconds: float) -> None:
    """Repeat a step of a transaction while the error is retriable and time remains."""
    end = time.monotonic() + seconds
    while True:
        try:
            call_with_deadline(call, name)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > end:
                LOG.info("%s: %s", name, error.args[0].name())
                raise
        else:
            return
