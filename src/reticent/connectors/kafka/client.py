"""Calls of the Kafka client that end: each has a deadline of its own, because the client's do not always hold.

librdkafka can wait for ever in `send_offsets_to_transaction`, whatever its timeout: when the coordinator of the group
goes away, the client gives up its handle for that broker, keeps it as the known coordinator, and waits for a handle that
nobody serves any more (its reports 5456 and 5511). So a call runs in a thread, and one that does not return in time is
left behind with its client. The broker ends what it had begun.
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
"""Seconds that a single call may take by the client's own clock."""
_DEADLINE = CALL_TIMEOUT + 3.0
_MAX_HUNG = 32
_hung_threads: list[threading.Thread] = []


class SessionLostError(Exception):
    """The consumer and the producer at hand are of no use any more; new ones go on from what is committed."""


class HungError(SessionLostError):
    """A call did not return: its client must not be touched again, not even to close it."""


def call_with_deadline(call: Callable[[], T], name: str) -> T:
    """The result of a call, named for the log, that returns in time; else the call is left behind and the session is lost."""
    done: queue.SimpleQueue[tuple[bool, T | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((True, call()))
        except BaseException as error:  # noqa: BLE001 - raised again by the one who waits
            done.put((False, error))

    _hung_threads[:] = [thread for thread in _hung_threads if thread.is_alive()]
    if len(_hung_threads) >= _MAX_HUNG:
        raise ConnectorError("The Kafka client hangs again and again.", hint="Start again; nothing is lost.")
    thread = threading.Thread(target=work, name="reticent-kafka", daemon=True)
    thread.start()
    try:
        well, result = done.get(timeout=_DEADLINE)
    except queue.Empty:
        _hung_threads.append(thread)
        raise HungError(f"{name} did not return") from None
    if not well:
        raise result  # type: ignore[misc]
    return result  # type: ignore[return-value]


@contextlib.contextmanager
def pause_gc() -> Iterator[None]:
    """Reads without the collector of circles: for thousands of messages at a time it costs more than the messages, and finds none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def retry_call(call: Callable[[], None], name: str, seconds: float) -> None:
    """Repeats a step of a transaction while the broker asks to and the transaction lasts."""
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
