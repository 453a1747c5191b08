"""Jobs: long work that continues after its request and after a restart of the server.

The store contains the input and the state of each job. The transaction that publishes a release also checks that its
job is still open and marks it done. A killed job therefore starts again, a job that has published does not, and a
cancelled job publishes nothing. Cancelling also ends the search and frees its worker. A job that was running at three
ends of the server may have caused them: the server parks it until a user retries it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent import _core
from reticent.errors import WorkCancelledError
from reticent.publication.single import find_publication
from reticent.publication.single import publish as publish_table
from reticent.service.actor import act_as, actor
from reticent.service.documents import OWNER, Documents, new_id, now
from reticent.service.draft_measures import measure_in_subprocess
from reticent.service.problems import ServiceError, to_service_error
from reticent.service.tokens import Token
from reticent.service.uploads import read_upload

if TYPE_CHECKING:
    from reticent.publication.gate import VerifiedRelease
    from reticent.publication.publication import TransactionHook
    from reticent.service.hub import Hub
    from reticent.store import Transaction

OPEN_STATES = ("queued", "running")
"""States of a job that has not ended."""
PARKED = "parked"
_MAX_ATTEMPTS = 3
_WORKERS = 2


class Jobs:
    """The job queue and its workers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.documents = Documents(hub.store, "job")
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="reticent-job")
        self._running: dict[str, Future[None]] = {}
        self._progress: dict[str, tuple[float, str]] = {}
        self._cancellations: dict[str, _core.table.CancellationToken] = {}
        self._stopping = threading.Event()
        self._work: dict[str, Callable[[dict[str, Any]], None]] = {
            "table": self._run_table,
            "draft": self._run_draft,
            "series": self._run_series,
            "evolving": self._run_evolving_table,
        }
        for job in reversed(self.documents.all()):
            if job["state"] == "running" and job["attempts"] >= _MAX_ATTEMPTS:
                hub.write(partial(self._park, ident=job["id"]))
            elif job["state"] in OPEN_STATES:
                self._start(job)

    def close(self) -> None:
        """Wait for running jobs; queued jobs start with the next server."""
        self._stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def add(self, tx: Transaction, kind: str, source: str, request: dict[str, Any]) -> dict[str, Any]:
        """Store a queued job within a transaction; `begin` starts it afterwards."""
        self._hub.audit_log.append(tx, "job", f"{kind}:{source}")
        who = actor()
        job: dict[str, Any] = {
            "id": new_id(),
            "created": now(),
            "kind": kind,
            "source": source,
            "state": "queued",
            "request": request,
            "who": asdict(who) if who else None,
            "attempts": 0,
            "release": None,
            "error": None,
        }
        self.documents.put(tx, job["id"], job)
        return job

    def begin(
        self, kind: str, source: str, request: dict[str, Any], *, key: str | None = None, digest: str = ""
    ) -> dict[str, Any]:
        """Queue a job that starts when a worker is free; a known idempotency key returns its existing job."""
        place = f"{kind}:{source}:{key}"

        def queue(tx: Transaction) -> tuple[dict[str, Any], str]:
            known = tx.get(OWNER, "job-key", place) if key else None
            if known is not None:
                ident, _, known_digest = known.decode().partition(" ")
                return self._find_by_key(tx, ident), known_digest
            job = self.add(tx, kind, source, request)
            if key:
                tx.put(OWNER, "job-key", place, f"{job['id']} {digest}".encode())
            return job, ""

        job, known_digest = self._hub.write(queue)
        if known_digest and known_digest != digest:
            raise ServiceError(409, "key", "This idempotency key was used for another request.", "Use a new key.")
        if not known_digest:
            self._start(job)
        return self.show(job)

    def _find_by_key(self, tx: Transaction, ident: str) -> dict[str, Any]:
        """Return the job of a known idempotency key."""
        job = self.documents.find(tx, ident)
        if job is None:
            raise ServiceError(
                410, "gone", "The job of this idempotency key was deleted after it ended.", "Use a new key."
            )
        return job

    def _start(self, job: dict[str, Any]) -> None:
        self._cancellations[job["id"]] = _core.table.CancellationToken()
        self._running[job["id"]] = self._pool.submit(self._run, job["id"])

    def get(self, ident: str) -> dict[str, Any]:
        """Return a job as clients see it."""
        return self.show(self.documents.get(ident))

    def all(self) -> list[dict[str, Any]]:
        """Return all jobs, newest first."""
        return [self.show(job) for job in self.documents.all()]

    def show(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return a job with its progress and without its request."""
        done, stage = self._progress.get(job["id"], (0.0, "waiting"))
        if job["state"] not in OPEN_STATES:
            done, stage = 1.0, job["state"]
        hidden = ("request", "who")
        return {key: value for key, value in job.items() if key not in hidden} | {"progress": done, "stage": stage}

    def wait(self, ident: str) -> dict[str, Any]:
        """Wait for a job to end and return it, for pages and tests."""
        future = self._running.get(ident)
        if future is not None:
            future.result()
        return self.get(ident)

    def cancel(self, ident: str) -> dict[str, Any]:
        """Cancel a job and its search; a release that it still computes is discarded."""

        def set_state(tx: Transaction) -> dict[str, Any]:
            job = self.documents.find(tx, ident) or known
            if job["state"] in (*OPEN_STATES, PARKED):
                self._hub.audit_log.append(tx, "cancel", f"{job['kind']}:{job['source']}")
                job["state"] = "cancelled"
                self._store_end(tx, job)
            return job

        known = self.documents.get(ident)
        job = self._hub.write(set_state)
        cancellation = self._cancellations.get(ident)
        if cancellation is not None and job["state"] == "cancelled":
            cancellation.cancel()
        return self.show(job)

    def retry(self, ident: str) -> dict[str, Any]:
        """Restart a parked job; any other job stays as it is."""

        def set_state(tx: Transaction) -> tuple[dict[str, Any], bool]:
            job = self.documents.find(tx, ident) or known
            again = job["state"] == PARKED
            if again:
                job |= {"state": "queued", "attempts": 0, "error": None}
                self.documents.put(tx, ident, job)
                self._hub.audit_log.append(tx, "job", f"{job['kind']}:{job['source']}")
            return job, again

        known = self.documents.get(ident)
        job, again = self._hub.write(set_state)
        if again:
            self._start(job)
        return self.show(job)

    # A worker's side

    def _run(self, ident: str) -> None:
        if self._stopping.is_set():
            return
        try:
            job = self._hub.write(lambda tx: self._start_attempt(tx, ident))
            if job is not None:
                act_as(Token.of(job["who"]) if job["who"] else None)
                self._work[job["kind"]](job)
        except WorkCancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - it becomes the error of the job
            problem = to_service_error(error).body
            self._hub.write(lambda tx: self._end(tx, ident, state="failed", error=problem))
        finally:
            act_as(None)
            self._progress.pop(ident, None)
            self._running.pop(ident, None)
            self._cancellations.pop(ident, None)

    def _find_open(self, tx: Transaction, ident: str) -> dict[str, Any] | None:
        """Return a job that is still open, or None."""
        job = self.documents.find(tx, ident)
        return job if job is not None and job["state"] in OPEN_STATES else None

    def _start_attempt(self, tx: Transaction, ident: str) -> dict[str, Any] | None:
        job = self._find_open(tx, ident)
        if job is not None:
            job |= {"state": "running", "attempts": job["attempts"] + 1}
            self.documents.put(tx, ident, job)
        return job

    def _park(self, tx: Transaction, ident: str) -> None:
        job = self.documents.find(tx, ident)
        if job is not None:
            problem = {
                "code": PARKED,
                "message": f"The server ended {_MAX_ATTEMPTS} times while this job ran. It does not restart the job automatically.",
                "hint": "Check the memory and the log of the server; then retry or cancel the job.",
            }
            self.documents.put(tx, ident, job | {"state": PARKED, "error": problem})

    def _end(self, tx: Transaction, ident: str, **end: Any) -> None:
        """Store how a job ended, unless it was cancelled meanwhile."""
        job = self._find_open(tx, ident)
        if job is not None:
            self._store_end(tx, job | end)

    def _finish(self, ident: str, publisher: str) -> TransactionHook:
        """Return the hook with which the publishing transaction lists the release and marks the job done."""

        def finish(tx: Transaction, passed: VerifiedRelease) -> None:
            job = self._find_open(tx, ident)
            if job is None:
                raise WorkCancelledError("The job was cancelled; nothing was published.")
            release = self._hub.releases.add(tx, passed, publisher, source=job["source"])
            self._hub.audit_log.append(tx, "publish", f"release:{release}")
            self._store_end(tx, job | {"state": "done", "release": release})

        return finish

    def _store_end(self, tx: Transaction, job: dict[str, Any]) -> None:
        """Store the end of a job and delete data that was uploaded only for this job."""
        self.documents.put(tx, job["id"], job)
        if job["kind"] == "series":
            self._hub.tables.delete(tx, job["request"]["table"])

    def _read_table(self, job: dict[str, Any]) -> pa.Table:
        self._progress[job["id"]] = (0.1, "reading")
        return read_upload(self._hub.tables.blob(job["request"]["table"]))

    def _run_table(self, job: dict[str, Any]) -> None:
        request, ident = job["request"], job["id"]
        policy = self._hub.policy(request["policy_hash"])
        table = self._read_table(job)
        policy.check_columns(table.column_names)
        self._progress[ident] = (0.3, "searching")
        name, store, method = f"table-{ident}", self._hub.store, request["method"]
        publisher = find_publication(table, policy, store, method=method)
        if publisher is not None:
            release = self._hub.releases.find_by_publisher(publisher)
            self._hub.write(lambda tx: self._end(tx, ident, state="done", release=release))
            return
        publish_table(
            table,
            policy,
            store,
            method=method,
            allow_republication=bool(request.get("allow_republication")),
            cancellation=self._cancellations[ident],
            name=name,
            commit=self._hub.write,
            hook=self._finish(ident, name),
        )

    def _run_draft(self, job: dict[str, Any]) -> None:
        """Measure a private draft in a child process; nothing is published."""
        draft = self._hub.drafts.get(job["request"]["draft"])
        self._progress[job["id"]] = (0.3, "measuring")
        cancellation = self._cancellations[job["id"]]
        figures = measure_in_subprocess(
            self._hub.tables.blob(draft["table"]),
            self._hub.bundle(draft["policy_hash"]).to_bytes(),
            draft["kind"],
            is_cancelled=lambda: cancellation.cancelled or self._stopping.is_set(),  # the next server restarts it
        )

        def end(tx: Transaction) -> None:
            if self._find_open(tx, job["id"]) and self._hub.drafts.find(tx, draft["id"]):
                self._hub.drafts.put(tx, draft["id"], draft | {"figures": figures})
            self._end(tx, job["id"], state="done")

        self._hub.write(end)

    def _run_series(self, job: dict[str, Any]) -> None:
        table = self._read_table(job)
        self._progress[job["id"]] = (0.3, "grouping")
        series = self._hub.series_by_name(job["source"])
        series.publish(table, hook=self._finish(job["id"], series.name))

    def _run_evolving_table(self, job: dict[str, Any]) -> None:
        self._progress[job["id"]] = (0.3, "publishing")
        table = self._hub.evolving_table(job["source"])
        table.publish(again=bool(job["request"].get("again")), hook=self._finish(job["id"], table.name))
