"""The hub: the shared state behind the routes and the pages, for one store."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.publication.evolving import Evolving
from reticent.publication.series import Series
from reticent.service.actor import actor, can_access
from reticent.service.audit_log import AuditLog
from reticent.service.documents import OWNER, Documents, now
from reticent.service.expiry import Expiry
from reticent.service.jobs import Jobs
from reticent.service.live_stream import LiveStream
from reticent.service.policy_registry import PolicyRegistry
from reticent.service.problems import ServiceError
from reticent.service.query_process import QueryProcess
from reticent.service.releases import Releases
from reticent.service.tokens import Tokens
from reticent.service.writer import Step, Writer
from reticent.service.zip_cache import ZipCache
from reticent.store import Store, Transaction
from reticent.store.database import truncate_log

NAME_PATTERN = r"[a-z0-9][a-z0-9_-]{0,63}"
T = TypeVar("T")


class Hub:
    """Takes the locks of a store and restores its streams, tables, series and jobs."""

    def __init__(
        self, store: Store, *, keep_days: float | None = None, keep: Mapping[str, float] | None = None
    ) -> None:
        self.store = store
        self._keep_days, self._keep = keep_days, keep or {}
        self._exit = contextlib.ExitStack()
        try:
            self._open()
        except BaseException:
            self._exit.close()
            raise

    def _open(self) -> None:
        self.policy_registry = PolicyRegistry()
        self._exit.callback(self.policy_registry.close)
        self.store.register(OWNER, policy_hash="")
        # One server per store: two servers would run two engines of the same stream.
        self._exit.enter_context(self.store.lock(OWNER, wait=10))
        self._locks = self._exit.enter_context(contextlib.ExitStack())
        self.tokens = Tokens(self.store)
        self.audit_log = AuditLog(self.store)
        self.query_process = QueryProcess()
        self._exit.callback(self.query_process.close)
        self.releases = Releases(self.store, ZipCache(self.policy_registry.folder / "packed"), self.log)
        self.tables = Documents(self.store, "table")
        self.audits = Documents(self.store, "audit")
        self.plans = Documents(self.store, "plan")
        self.drafts = Documents(self.store, "draft")
        self.streams: dict[str, LiveStream] = {}
        self.evolving: dict[str, Evolving] = {}
        self.series: dict[str, Series] = {}
        self._create_lock = threading.Lock()
        self._logged_reads: set[tuple[str, str, str]] = set()
        self.writer = Writer(self.store)
        self._exit.callback(self.writer.close)
        for publisher in self.store.publishers():
            kind, _, name = publisher.partition(":")
            if kind in ("stream", "evolving", "series") and name:
                self._load_source(kind, name)
        self.jobs = Jobs(self)
        self._exit.callback(self.jobs.close)
        self.expiry = Expiry(self, self._keep)
        self._exit.callback(self.expiry.close)

    def close(self) -> None:
        """Finish the work in progress and release the locks of the store."""
        self._exit.close()

    def write(self, change: Callable[[Transaction], T]) -> T:
        """Change the store for the current actor and return after the commit; do not call it in the event loop."""
        context = copy_context()
        future: Future[T] = self.writer.submit(Step(lambda tx: context.run(change, tx)))
        return future.result()

    def write_and_log(self, action: str, target: str, change: Callable[[Transaction], T]) -> T:
        """Change the store and append an audit log entry in the same transaction."""

        def step(tx: Transaction) -> T:
            self.audit_log.append(tx, action, target)
            return change(tx)

        return self.write(step)

    def log(self, action: str, target: str) -> None:
        """Append an action of the current actor to the audit log and return after the commit."""
        self.write(lambda tx: self.audit_log.append(tx, action, target))

    def log_read(self, target: str) -> None:
        """Log that the actor reads a stream or queries a release, at most once a day for each."""
        who, day = actor(), now()[:10]
        key = (who.id if who else "", target, day)
        if who is None or key in self._logged_reads:
            return
        self._logged_reads = {known for known in self._logged_reads if known[2] == day} | {key}
        self.log("read", target)

    def delete_table(self, table: str, *, at_once: bool = False) -> None:
        """Delete an uploaded table, its plan and its drafts; `at_once` also clears the log of the store. Releases stay."""
        document = self.tables.get(table)
        drafts = [draft["id"] for draft in self.drafts.all() if draft["table"] == table]

        def remove(tx: Transaction) -> None:
            self.tables.delete(tx, table)
            self.plans.delete(tx, table)
            for draft in drafts:
                self.drafts.delete(tx, draft)

        self.write_and_log("delete", f"table:{document['name']}", remove)
        if at_once:
            truncate_log(self.store.engine)

    def withdraw(self, release: str) -> dict[str, Any]:
        """Withdraw a release: the service stops serving it, but recipients keep their copies."""
        document = self.releases.get(release)
        target = f"{document['kind']}:{document['source']}"
        return self.write_and_log("withdraw", target, lambda tx: self.releases.withdraw(tx, release))

    def halt(self, stream: str, *, stop: bool) -> None:
        """Stop or resume a stream."""
        running = self.stream(stream)
        self.write_and_log("stop" if stop else "resume", running.publisher, running.stop if stop else running.resume)

    # Policies

    def accept(self, bundle: Bundle) -> Policy:
        """Check a policy and store it for later audits."""
        policy = self.policy_registry.policy(bundle)
        self.write(lambda tx: tx.put(OWNER, "bundle", policy.hash, bundle.to_bytes()))
        return policy

    def bundle(self, digest: str) -> Bundle:
        """Return an accepted policy and its files by its hash."""
        data = self.store.get(OWNER, "bundle", digest)
        if data is None:
            raise ServiceError(
                404, "not-found", "The policy of this release is not in the store.", "Send the policy with the request."
            )
        return Bundle.from_bytes(data)

    def policy(self, digest: str) -> Policy:
        """Return a policy by its hash."""
        return self.policy_registry.policy(self.bundle(digest))

    # Sources

    def create(self, kind: str, name: str, bundle: Bundle) -> Policy:
        """Create a stream, an evolving table or a series under a policy."""
        publisher = f"{kind}:{name}"
        if not re.fullmatch(NAME_PATTERN, name):
            raise ServiceError(
                422, "request", "A name has 1 to 64 characters: a-z, 0-9, - and _.", "Choose another name."
            )
        with self._create_lock:
            if publisher in self.store.publishers():
                raise ServiceError(
                    409, "exists", f"A source of kind {kind} with this name exists already.", "Choose another name."
                )
            policy = self.accept(bundle)
            # Rejects a policy that the engine cannot run, or whose parameter set the store does not accept.
            engine = publisher_class(kind, getattr(policy, kind).method)
            engine(policy, rng=Rng.fresh())
            if digest := engine.pin_digest(policy):
                self.store.veil_key(digest)

            self.write_and_log("create", publisher, lambda tx: tx.put(publisher, "policy", "bundle", bundle.to_bytes()))
            self.store.register(publisher, policy_hash=policy.hash)
            self._load_source(kind, name)
        return policy

    def _load_source(self, kind: str, name: str) -> None:
        publisher = f"{kind}:{name}"
        data = self.store.get(publisher, "policy", "bundle")
        if data is None:
            return
        self._locks.enter_context(self.store.lock(publisher, wait=10))
        policy = self.policy_registry.policy(Bundle.from_bytes(data))
        if kind == "stream":
            stream = LiveStream(name, policy, self.store, keep_days=self._keep_days)
            self.write(stream.begin)  # finds a corrupt store at the start, not at the first record
            self.streams[name] = stream
        elif kind == "evolving":
            self.evolving[name] = Evolving(self.store, policy, name=publisher, commit=self.write)
        else:
            self.series[name] = Series(self.store, policy, name=publisher, commit=self.write)

    def stream(self, name: str) -> LiveStream:
        """Return a stream, or raise 404; 403 if the actor's scope does not include it."""
        if not can_access("stream", name):
            raise ServiceError(
                403, "scope", "The scope of this token does not include this source.", "Ask a custodian."
            )
        return _find(self.streams, name, "stream")

    def evolving_table(self, name: str) -> Evolving:
        """Return an evolving table, or raise 404."""
        return _find(self.evolving, name, "evolving table")

    def series_by_name(self, name: str) -> Series:
        """Return a series, or raise 404."""
        return _find(self.series, name, "series")


def _find(sources: dict[str, T], name: str, kind: str) -> T:
    if name not in sources:
        raise ServiceError(404, "not-found", f"There is no such {kind}.", "Check the name, or create it first.")
    return sources[name]
