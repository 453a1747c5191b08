"""What the server forgets by itself: jobs, tables and releases that are older than the operator wants them kept.

Nothing goes unless it was asked for. What is gone is gone from the files of the store too; batches of streams are
`reticent.service.retention`'s. A release of an evolving table or a series is handed out no more but stays in the private store:
the judge lays every later one beside it.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from reticent.errors import PolicyError, ReticentError
from reticent.service.jobs import OPEN_STATES, PARKED
from reticent.store.database import truncate_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reticent.service.hub import Hub

LOG = logging.getLogger(__name__)
KINDS = ("jobs", "tables", "releases")
_HOUR = 3600.0
_ACTIVE_STATES = (*OPEN_STATES, PARKED)
_MAX_DAYS = 36_500
"""Days; before them there is no date to compare with."""


def parse_days(words: Sequence[str]) -> dict[str, float]:
    """Days by kind, from words as `jobs=30`."""
    days = {}
    for word in words:
        kind, _, number = word.partition("=")
        try:
            days[kind] = float(number)
        except ValueError:
            days[kind] = -1.0
        if kind not in KINDS or not 0 <= days[kind] <= _MAX_DAYS:
            raise PolicyError(f"--keep {word}: what is kept for how long?", hint=f"KIND=DAYS with {', '.join(KINDS)}.")
    return days


class Expiry:
    """Looks once an hour for what is too old."""

    def __init__(self, hub: Hub, days: Mapping[str, float]) -> None:
        self._hub, self._days = hub, days
        self._end = threading.Event()
        self._deleters: dict[str, Callable[[str], int]] = {
            "jobs": self._delete_jobs,
            "tables": self._delete_tables,
            "releases": self._delete_releases,
        }
        self._thread = threading.Thread(target=self._run, name="reticent-expiry", daemon=True)
        if days:
            self._thread.start()

    def close(self) -> None:
        """Ends after what is under way."""
        self._end.set()
        if self._days:
            self._thread.join()

    def sweep(self, now: dt.datetime | None = None) -> dict[str, int]:
        """Forgets what is too old; gives how many of each kind went."""
        now = now or dt.datetime.now(dt.UTC)
        gone = {
            kind: self._deleters[kind]((now - dt.timedelta(days=days)).isoformat(timespec="milliseconds"))
            for kind, days in self._days.items()
        }
        if any(gone.values()):
            truncate_log(self._hub.store.engine)
        return gone

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.sweep()
            except ReticentError as error:  # a full disk, perhaps: the next hour tries again
                LOG.warning("what is too old could not be forgotten: %s", error)
            self._end.wait(_HOUR)

    def _delete_jobs(self, before: str) -> int:
        documents = self._hub.jobs.documents
        old = [job["id"] for job in documents.all() if job["created"] < before and job["state"] not in _ACTIVE_STATES]
        for ident in old:
            self._hub.write(partial(documents.delete, ident=ident))
        return len(old)

    def _delete_tables(self, before: str) -> int:
        wanted = {
            job["request"].get("table") for job in self._hub.jobs.documents.all() if job["state"] in _ACTIVE_STATES
        }
        old = [
            table["id"] for table in self._hub.tables.all() if table["created"] < before and table["id"] not in wanted
        ]
        for ident in old:
            self._hub.delete_table(ident)
        return len(old)

    def _delete_releases(self, before: str) -> int:
        old = [
            release
            for release in self._hub.releases.all()
            if release["created"] < before and self._is_pending_deletion(release)
        ]
        if old:
            self._hub.query_process.close()  # it may have one of them open
        for release in old:
            self._hub.write(partial(self._hub.releases.withdraw, ident=release["id"]))
            self._hub.releases.drop(release["id"])
            if release["kind"] == "table":
                publisher, below = release["publisher"], release["outbox"] + 1
                with self._hub.store.lock(publisher, wait=10):
                    self._hub.write(methodcaller("forget_outbox", publisher, below))
        return len(old)

    def _is_pending_deletion(self, release: dict[str, Any]) -> bool:
        """Whether something of it is still to go."""
        if not release["withdrawn"]:
            return True
        return release["kind"] == "table" and next(self._hub.store.outbox(release["publisher"]), None) is not None
