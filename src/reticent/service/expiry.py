"""Deletion of jobs, tables and releases that are older than the operator's limit.

Without a limit the server deletes nothing. Deleted data is also removed from the files of the store. Batches of streams
have `reticent.service.retention`. An old release of an evolving table or a series is withdrawn, but it stays in the
private store: the verifier compares every later release with it.
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
"""Largest number of days; a larger one would exceed the range of dates."""


def parse_days(words: Sequence[str]) -> dict[str, float]:
    """Return days by kind, from options such as `jobs=30`."""
    days = {}
    for word in words:
        kind, _, number = word.partition("=")
        try:
            days[kind] = float(number)
        except ValueError:
            days[kind] = -1.0
        if kind not in KINDS or not 0 <= days[kind] <= _MAX_DAYS:
            raise PolicyError(
                f"--keep {word} is not KIND=DAYS.", hint=f"Use one of {', '.join(KINDS)}, such as jobs=30."
            )
    return days


class Expiry:
    """Deletes old documents once an hour."""

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
        """Stop after the current deletion."""
        self._end.set()
        if self._days:
            self._thread.join()

    def sweep(self, now: dt.datetime | None = None) -> dict[str, int]:
        """Delete everything older than its limit and return the number of deletions by kind."""
        now = now or dt.datetime.now(dt.UTC)
        deleted = {
            kind: self._deleters[kind]((now - dt.timedelta(days=days)).isoformat(timespec="milliseconds"))
            for kind, days in self._days.items()
        }
        if any(deleted.values()):
            truncate_log(self._hub.store.engine)
        return deleted

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.sweep()
            except ReticentError as error:  # such as a full disk; the next hour tries again
                LOG.warning("old jobs, tables or releases could not be deleted: %s", error)
            self._end.wait(_HOUR)

    def _delete_jobs(self, before: str) -> int:
        documents = self._hub.jobs.documents
        old = [job["id"] for job in documents.all() if job["created"] < before and job["state"] not in _ACTIVE_STATES]
        for ident in old:
            self._hub.write(partial(documents.delete, ident=ident))
        return len(old)

    def _delete_tables(self, before: str) -> int:
        used = {job["request"].get("table") for job in self._hub.jobs.documents.all() if job["state"] in _ACTIVE_STATES}
        old = [table["id"] for table in self._hub.tables.all() if table["created"] < before and table["id"] not in used]
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
            self._hub.query_process.close()  # it may have one of these releases open
        for release in old:
            self._hub.write(partial(self._hub.releases.withdraw, ident=release["id"]))
            self._hub.releases.drop(release["id"])
            if release["kind"] == "table":
                publisher, below = release["publisher"], release["outbox"] + 1
                with self._hub.store.lock(publisher, wait=10):
                    self._hub.write(methodcaller("forget_outbox", publisher, below))
        return len(old)

    def _is_pending_deletion(self, release: dict[str, Any]) -> bool:
        """Return whether some part of a release is still to be deleted."""
        if not release["withdrawn"]:
            return True
        return release["kind"] == "table" and next(self._hub.store.outbox(release["publisher"]), None) is not None
