"""Publishes one table, or several linked tables, once, and records its persons in a store.

The same table under the same policy is the same release: a second call returns the stored release and makes no new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.encode.columns import normalize_names
from reticent.engine import publisher_class
from reticent.errors import StateError
from reticent.policy import Policy
from reticent.publication import linked
from reticent.publication import table as tables
from reticent.publication.gate import VerifiedRelease
from reticent.publication.population import Population
from reticent.publication.publication import Commit, TransactionHook, add_provenance, commit_each_step
from reticent.release import Release
from reticent.release.codec import from_bytes, table_digest
from reticent.store import Store, Transaction
from reticent.store.store import bind_veil_key

if TYPE_CHECKING:
    from reticent._core.table import CancellationToken

_NAME_PREFIX = "table-"


def publish(  # noqa: PLR0913 - the inputs of a publication, and how to store it
    table: pa.Table,
    policy: Policy,
    store: Store,
    *,
    method: str | None = None,
    seed: int | None = None,
    allow_republication: bool = False,
    name: str | None = None,
    commit: Commit | None = None,
    hook: TransactionHook | None = None,
    cancellation: CancellationToken | None = None,
) -> Release:
    """Release a table under a policy, as `table.publish` does, and store the release.

    `allow_republication` allows persons who are in other publications, and the release says so. The publication has a `name` in the
    store, by default with the next number; `hook` runs in the transaction that publishes.

    Raises:
        GuaranteeError: the policy cannot be met, or some persons are in another publication.
    """
    method = method or policy.table.method
    if pinned := publisher_class("table", method).pin_digest(policy):
        store.veil_key(pinned, binding=False)  # refuses other veil parameters before anything else

    def make(words: tuple[str, ...]) -> VerifiedRelease:
        return tables.publish(
            table, policy, method=method, seed=seed, store=store, not_covered=words, cancellation=cancellation
        )

    if policy.person is not None and policy.person not in table.column_names:
        policy.check_columns(table.column_names)
    once = _SinglePublication(
        store,
        policy,
        _identity_of(table, policy, method),
        method,
        allow_republication=allow_republication,
        parameters_digest=pinned,
    )
    persons = None if policy.person is None else table.column(policy.person)
    return once.publish(persons, make, name=name, commit=commit, hook=hook)


def publish_tables(
    parts: Mapping[str, pa.Table],
    policy: Policy,
    store: Store,
    *,
    seed: int | None = None,
    allow_republication: bool = False,
    standard: Mapping[str, Any] | None = None,
) -> Release:
    """Release linked tables under a policy, as `linked.publish` does, and store the release with all its persons.

    Raises:
        GuaranteeError: the policy cannot be met, or some persons are in another publication.
    """

    def make(words: tuple[str, ...]) -> VerifiedRelease:
        return linked.publish(parts, policy, seed=seed, standard=standard, not_covered=words)

    identity = f"{' '.join(table_digest(parts[name]) for name in sorted(parts))} {policy.hash} {linked.LAYOUT}"
    columns = [part.column(policy.person).cast(pa.string()) for part in parts.values()]
    names = normalize_names(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
    # Rows without a person are suppressed, so they are not in the ledger either.
    persons = names.filter(pc.not_equal(names, ""))
    return _SinglePublication(store, policy, identity, linked.LAYOUT, allow_republication=allow_republication).publish(
        persons, make
    )


class _SinglePublication:
    """One publication of one table, or of several linked tables."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        identity: str,
        method: str,
        *,
        allow_republication: bool,
        parameters_digest: str = "",
    ) -> None:
        self._store, self._policy, self._identity = store, policy, identity
        self._method, self._allow_republication, self._parameters_digest = (
            method,
            allow_republication,
            parameters_digest,
        )

    def publish(
        self,
        persons: pa.ChunkedArray | None,
        make: Callable[[tuple[str, ...]], VerifiedRelease],
        *,
        name: str | None = None,
        commit: Commit | None = None,
        hook: TransactionHook | None = None,
    ) -> Release:
        """Return the stored release of this table, or make and store a new one with `make`."""
        store = self._store
        if (before := _find_by_identity(store, self._identity)) is not None:
            return self._load_release(before)
        name = name or f"{_NAME_PREFIX}{len(_publication_names(store)) + 1}"
        population = Population(
            store, name, self._policy, kind="table", method=self._method, allow_republication=self._allow_republication
        )
        if self._parameters_digest and persons is None:
            hashes = population.hash_everybody()
        else:
            hashes = population.hash_persons(persons)
            population.refuse_shared_persons(hashes)
        passed = make(population.not_covered).pack()
        population.refuse_conflicts(passed.events)
        store.register(name, policy_hash=self._policy.hash)

        def step(tx: Transaction) -> VerifiedRelease:
            if self._parameters_digest:
                bind_veil_key(tx, self._parameters_digest)
            return passed.keep(tx, name, population, hashes, position=self._identity, sent=True, hook=hook)

        with store.lock(name):
            kept = (commit or commit_each_step(store))(step)
        return add_provenance(passed.release, store, name, kept.entry.number - 1, kept.digests)

    def _load_release(self, name: str) -> Release:
        entry = next(self._store.outbox(name), None)
        if entry is None:
            raise StateError(
                f"This table was already published as {name!r}, and the store no longer has the release. Nothing was published.",
                hint="Use the first release: a second release of the same people would disclose more than the first.",
            )
        return add_provenance(from_bytes(entry.payload), self._store, name, entry.number)


def find_publication(table: pa.Table, policy: Policy, store: Store, *, method: str | None = None) -> str | None:
    """Return the name of the publication of this table under this policy, if there is one."""
    return _find_by_identity(store, _identity_of(table, policy, method or policy.table.method))


def _identity_of(table: pa.Table, policy: Policy, method: str) -> str:
    return f"{table_digest(table)} {policy.hash} {method}"


def _find_by_identity(store: Store, identity: str) -> str | None:
    return next((name for name in _publication_names(store) if store.publisher_row(name)["position"] == identity), None)


def _publication_names(store: Store) -> list[str]:
    return [name for name in store.publishers() if name.startswith(_NAME_PREFIX)]
