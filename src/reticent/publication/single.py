"""One table, once, in a store that remembers whom it was about.

The same table under the same policy is the same release: asked for again, the stored one is given, and no second one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.engine import publisher_class
from reticent.errors import StateError
from reticent.publication import table as tables
from reticent.publication.population import DESPITE, Population
from reticent.publication.publication import at_once
from reticent.publication.stamp import stamped
from reticent.release.codec import digest, from_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent._core.table import Watch
    from reticent.policy import Policy
    from reticent.publication.gate import Passed
    from reticent.publication.publication import Also, Commit
    from reticent.release import Release
    from reticent.store import Store, Transaction

_NAME = "table-"


def publish(  # noqa: PLR0913 - what a publication needs, and how its keeper stores it
    table: pa.Table,
    policy: Policy,
    store: Store,
    *,
    method: str | None = None,
    seed: int | None = None,
    despite: bool = False,
    name: str | None = None,
    commit: Commit | None = None,
    also: Also | None = None,
    watch: Watch | None = None,
) -> Release:
    """Releases a table under a policy, and remembers it.

    Args:
        table: exactly the columns of the policy.
        policy: roles and requirements.
        store: remembers who stood in which publication.
        method: instead of the policy's `table.method`.
        seed: makes the release repeatable, for tests only.
        despite: publish although some persons stand in other publications; the release says so.
        name: of the publication in the store; the next number if left out.
        commit: how a step becomes durable.
        also: takes part in the transaction that publishes.
        watch: tells how far the search is, and may be cancelled from another thread.

    Raises:
        GuaranteeError: the policy cannot be met, or some of the persons stand in another publication.
    """
    method = method or policy.table.method
    what = f"{digest(table)} {policy.hash} {method}"
    if pinned := publisher_class("table", method).pinned(policy):
        store.house(pinned)  # another veil over the same truth is refused as such
    if (before := published_before(table, policy, store, method=method)) is not None:
        entry = next(store.outbox(before), None)
        if entry is None:
            raise StateError(
                f"This table was published as {before!r}, and the release is no longer kept.",
                hint="Nothing was published now: a second release of the same persons would tell more than the first. Use the first.",
            )
        return stamped(from_bytes(entry.payload), store, before, entry.number)
    name = name or f"{_NAME}{len(_names(store)) + 1}"
    population = Population(store, name, policy, kind="table", method=method, despite=despite)
    persons = population.of_table(table)
    population.refuse_shared(persons)
    passed = tables.publish(
        table,
        policy,
        method=method,
        seed=seed,
        store=store,
        not_covered=(DESPITE,) if population.shared else (),
        watch=watch,
    )
    population.refuse_parted(passed.sights)
    store.register(name, policy_hash=policy.hash)

    def step(tx: Transaction) -> Passed:
        kept = passed.keep(tx, name, position=what, sent=True)
        population.record(tx, persons, passed.sights)
        if also is not None:
            also(tx, kept)
        return kept

    with store.lock(name):
        kept = (commit or at_once(store))(step)
    return stamped(passed.release, store, name, kept.entry.number - 1)


def published_before(table: pa.Table, policy: Policy, store: Store, *, method: str | None = None) -> str | None:
    """The publication of this very table under this policy, if there is one."""
    what = f"{digest(table)} {policy.hash} {method or policy.table.method}"
    return next((name for name in _names(store) if store.row(name)["position"] == what), None)


def _names(store: Store) -> list[str]:
    return [name for name in store.publishers() if name.startswith(_NAME)]
