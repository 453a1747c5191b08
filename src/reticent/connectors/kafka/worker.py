"""One worker of a consumer group: reads records, places them, publishes; read-process-write in one transaction.

Guarantee: the published lines, the state of the shard and the input position become visible together or not at all, so
    that a reader with `isolation.level=read_committed` sees every record once, in one group, whatever dies. A batch that
    is computed again gives the same lines, because every choice is a function of (key of the stream, shard, offset): even
    one who reads uncommitted data never sees a record in two groups. A worker that lost a partition cannot commit for it:
    the broker compares the group's generation.
Not covered: sinks read without `read_committed` see lines twice; topics whose offsets start anew under the same name.
Cost: a transaction per batch, which the broker commits while the next batch is read and placed; 28 bytes of journal per record.
    What is in memory runs ahead of what is committed by two batches at most, and is thrown away when a transaction fails.
Reference: Kafka improvement proposals 98 and 447.
Differences from them: none.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable

from confluent_kafka import KafkaException

from reticent.connectors.kafka.client import SessionLostError
from reticent.connectors.kafka.session import DeadLetter, Job, Session, Settings, Totals
from reticent.errors import ConnectorError
from reticent.publication.stream import StreamPublication

LOG = logging.getLogger(__name__)
_PAUSE, _MAX_PAUSE = 0.1, 2.0
"""Seconds between a failure and the next session: the first pause, then doubled, and the longest."""

__all__ = ["DeadLetter", "Job", "Settings", "Worker"]


class Worker:
    """Reads from one topic, writes to another; `run` works until it is told to stop."""

    def __init__(self, job: Job) -> None:
        self._job, self._totals = job, Totals()
        self._session: Session | None = None
        self._is_healthy = False
        """Whether the brokers have answered the last session."""
        # One name for all sessions of this worker: a new one ends what an earlier one has left open.
        self._name = f"reticent-{job.settings.group}-{uuid.uuid4()}"

    @property
    def published(self) -> int:
        """Records committed so far."""
        return self._totals.published

    @property
    def dead(self) -> int:
        """Records set aside so far."""
        return self._totals.dead

    @property
    def shards(self) -> dict[int, StreamPublication]:
        """The shards this worker has now."""
        return {number: held.shard for number, held in self._session.shards.items()} if self._session else {}

    def positions(self) -> dict[int, int]:
        """The committed input offset of every shard this worker has."""
        return {number: held.committed for number, held in self._session.shards.items()} if self._session else {}

    def run(self, keep_running: Callable[[Worker], bool]) -> None:
        """Works while `going` says so; starts afresh after a failure of the brokers, gives up when it lasts."""
        failing, pause, patience = 0.0, _PAUSE, self._job.settings.patience
        while True:
            try:
                self._work(keep_running)
            except (KafkaException, SessionLostError, ConnectorError) as error:
                reason = error.args[0].name() if isinstance(error, KafkaException) else str(error)
            else:
                return
            if self._is_healthy or not failing:
                failing, pause = time.monotonic(), _PAUSE
            if time.monotonic() - failing > patience:
                raise ConnectorError(
                    f"The brokers have not taken a batch for {patience:.0f} s ({reason}).",
                    hint="Check them and start again; nothing is lost.",
                )
            LOG.warning("starting afresh: %s", reason)
            if not self._wait(pause, keep_running):
                return
            pause = min(2 * pause, _MAX_PAUSE)

    def _work(self, keep_running: Callable[[Worker], bool]) -> None:
        """One session, until the end or its first failure."""
        self._is_healthy = False
        session = self._session = Session(self._job, self._name, self._totals)
        try:
            while keep_running(self):
                session.step()
            session.finish()
        finally:
            self._session = None
            session.close()
            self._is_healthy = session.is_healthy

    def _wait(self, seconds: float, keep_running: Callable[[Worker], bool]) -> bool:
        """Whether to go on after a pause."""
        end = time.monotonic() + seconds
        while keep_running(self):
            if time.monotonic() > end:
                return True
            time.sleep(_PAUSE / 2)
        return False
