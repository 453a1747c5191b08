"""One worker of a consumer group: read, anonymize and publish records in one transaction per batch.

Guarantee: published lines, shard state and input position become visible together or not at all. A consumer with
    `isolation.level=read_committed` sees every record once, in one group, whichever process fails. A repeated batch
    gives the same lines, because every choice is a function of (stream key, shard, offset): even a consumer of
    uncommitted data never sees a record in two groups. The broker compares the group's generation, so that a worker
    that lost a partition cannot commit for it.
Not covered: consumers without `read_committed`, which may see lines twice; topics that were recreated under the same
name.
Cost: a transaction per batch, which the broker commits while the next batch is read and anonymized; 28 bytes of journal
    per record. The state in memory is at most two batches ahead of the committed state, and is discarded after a
    failure.
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
"""Seconds between a failure and the next session: the first pause, which doubles, and the longest."""

__all__ = ["DeadLetter", "Job", "Settings", "Worker"]


class Worker:
    """Reads from one topic and writes to another; `run` works until stopped."""

    def __init__(self, job: Job) -> None:
        self._job, self._totals = job, Totals()
        self._session: Session | None = None
        self._is_healthy = False
        """Whether the brokers have answered the last session."""
        # All sessions of a worker share one name: a new one aborts the open transaction of an earlier one.
        self._name = f"reticent-{job.settings.group}-{uuid.uuid4()}"

    @property
    def published(self) -> int:
        """Number of records committed so far."""
        return self._totals.published

    @property
    def dead(self) -> int:
        """Number of records rejected so far."""
        return self._totals.dead

    @property
    def shards(self) -> dict[int, StreamPublication]:
        """The shards that this worker has now."""
        return {number: owned.shard for number, owned in self._session.shards.items()} if self._session else {}

    def positions(self) -> dict[int, int]:
        """Return the committed input offset of every shard of this worker."""
        return {number: owned.committed for number, owned in self._session.shards.items()} if self._session else {}

    def run(self, keep_running: Callable[[Worker], bool]) -> None:
        """Work while `keep_running` returns True; open a new session after a broker failure, give up if it lasts."""
        failed_since, pause, patience = 0.0, _PAUSE, self._job.settings.patience
        while True:
            try:
                self._work(keep_running)
            except (KafkaException, SessionLostError, ConnectorError) as error:
                reason = error.args[0].name() if isinstance(error, KafkaException) else str(error)
            else:
                return
            if self._is_healthy or not failed_since:
                failed_since, pause = time.monotonic(), _PAUSE
            if time.monotonic() - failed_since > patience:
                raise ConnectorError(
                    f"The brokers have not accepted a batch for {patience:.0f} s ({reason}).",
                    hint="Check the brokers and start again; no record is lost.",
                )
            LOG.warning("starting a new session: %s", reason)
            if not self._wait(pause, keep_running):
                return
            pause = min(2 * pause, _MAX_PAUSE)

    def _work(self, keep_running: Callable[[Worker], bool]) -> None:
        """Run one session, until the end or its first failure."""
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
        """Wait; return whether to continue."""
        end = time.monotonic() + seconds
        while keep_running(self):
            if time.monotonic() > end:
                return True
            time.sleep(_PAUSE / 2)
        return False
