"""One table, or several that belong together, once, in a store that remembers whom it was about.

The same table under the same policy is the same release: asked for again, the stored one is given, and no second one is made.
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
from reticent.publication.gate import Passed
from reticent.publication.population import Population
from reticent.publication.publication import Also, Commit, at_once, stamped
from reticent.release import Release
from reticent.release.codec import digest, from_bytes
from reticent.store import Store, Transaction
from reticent.store.store import bind_veil_key

if TYPE_CHECKING:
    from reticent._core.table import CancellationToken

_NAME = "table-"


def publish(  # noqa: PLR0913 - what a publication needs, and how its keeper stores it
    table: pa.Table,
    policy: Policy,
    store: Store,
    *,
    method: str | None = None,
    seed: int | None = None,
    allow_republication: bool = False,
    name: str | None = None,
    commit: Commit | None = None,
    also: Also | None = None,
    cancellation: CancellationToken | None = None,
) -> Release:
    """Releases a table under a policy, as `table` does, and remembers it.

    Persons who stand in other publications are released `despite` that, and the release says so. The publication has a `name` in the
    store, the next number if it is left out; `also` takes part in the transaction that publishes.

    Raises:
        GuaranteeError: the policy cannot be met, or some of the persons stand in another publication.
    """
    method = method or policy.table.method
    if pinned := publisher_class("table", method).pin_digest(policy):
        store.veil_key(pinned, binding=False)  # another veil over the same truth is refused as such

    def make(words: tuple[str, ...]) -> Passed:
        return tables.publish(table, policy, method=method, seed=seed, store=store, not_covered=words, cancellation=cancellation)

    if policy.person is not None and policy.person not in table.column_names:
        policy.check_columns(table.column_names)
    once = _Once(store, policy, _what(table, policy, method), method, allow_republication=allow_republication, pinned=pinned)
    persons = None if policy.person is None else table.column(policy.person)
    return once.publish(persons, make, name=name, commit=commit, also=also)


def publish_linked(
    parts: Mapping[str, pa.Table],
    policy: Policy,
    store: Store,
    *,
    seed: int | None = None,
    allow_republication: bool = False,
    standard: Mapping[str, Any] | None = None,
) -> Release:
    """Releases linked tables under a policy, as `linked` does, and remembers it: one publication of all their persons.

    Raises:
        GuaranteeError: the policy cannot be met, or some of the persons stand in another publication.
    """

    def make(words: tuple[str, ...]) -> Passed:
        return linked.publish(parts, policy, seed=seed, standard=standard, not_covered=words)

    what = f"{' '.join(digest(parts[name]) for name in sorted(parts))} {policy.hash} {linked.LAYOUT}"
    columns = [part.column(policy.person).cast(pa.string()) for part in parts.values()]
    names = normalize_names(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
    # Rows of nobody are left out of the release, and so of the ledger.
    persons = names.filter(pc.not_equal(names, ""))
    return _Once(store, policy, what, linked.LAYOUT, allow_republication=allow_republication).publish(persons, make)


class _Once:
    """One publication of one table, or of several that belong together."""

    def __init__(
        self, store: Store, policy: Policy, what: str, method: str, *, allow_republication: bool, pinned: str = ""
    ) -> None:
        self._store, self._policy, self._what = store, policy, what
        self._method, self._allow_republication, self._pinned = method, allow_republication, pinned

    def publish(
        self,
        persons: pa.ChunkedArray | None,
        make: Callable[[tuple[str, ...]], Passed],
        *,
        name: str | None = None,
        commit: Commit | None = None,
        also: Also | None = None,
    ) -> Release:
        """The stored release where this very table has one; otherwise one that `make` makes, with what else it must say."""
        store = self._store
        if (before := _before(store, self._what)) is not None:
            return self._stored(before)
        name = name or f"{_NAME}{len(_names(store)) + 1}"
        population = Population(store, name, self._policy, kind="table", method=self._method, allow_republication=self._allow_republication)
        if self._pinned and persons is None:
            hashes = population.everybody()
        else:
            hashes = population.of(persons)
            population.refuse_shared(hashes)
        passed = make(population.not_covered).packed()
        population.refuse_parted(passed.events)
        store.register(name, policy_hash=self._policy.hash)

        def step(tx: Transaction) -> Passed:
            if self._pinned:
                bind_veil_key(tx, self._pinned)
            return passed.keep(tx, name, population, hashes, position=self._what, sent=True, also=also)

        with store.lock(name):
            kept = (commit or at_once(store))(step)
        return stamped(passed.release, store, name, kept.entry.number - 1, kept.digests)

    def _stored(self, name: str) -> Release:
        entry = next(self._store.outbox(name), None)
        if entry is None:
            raise StateError(
                f"This table was published as {name!r}, and the release is no longer kept.",
                hint="Nothing was published now: a second release of the same persons would tell more than the first. Use the first.",
            )
        return stamped(from_bytes(entry.payload), self._store, name, entry.number)


def published_before(table: pa.Table, policy: Policy, store: Store, *, method: str | None = None) -> str | None:
    """The publication of this very table under this policy, if there is one."""
    return _before(store, _what(table, policy, method or policy.table.method))


def _what(table: pa.Table, policy: Policy, method: str) -> str:
    return f"{digest(table)} {policy.hash} {method}"


def _before(store: Store, what: str) -> str | None:
    return next((name for name in _names(store) if store.publisher_row(name)["position"] == what), None)


def _names(store: Store) -> list[str]:
    return [name for name in store.publishers() if name.startswith(_NAME)]
