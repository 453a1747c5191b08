"""One table, once, in a store that remembers whom it was about.

The same table under the same policy is the same release: asked for again, the stored one is given, and no second one is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.engine import publisher_class
from reticent.publication import table as tables
from reticent.publication.population import DESPITE, Population
from reticent.publication.stamp import stamped
from reticent.release.codec import digest, from_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.store import Store

_NAME = "table-"


def publish(
    table: pa.Table,
    policy: Policy,
    store: Store,
    *,
    method: str | None = None,
    seed: int | None = None,
    despite: bool = False,
) -> Release:
    """Releases a table under a policy, and remembers it.

    Args:
        table: exactly the columns of the policy.
        policy: roles and requirements.
        store: remembers who stood in which publication.
        method: instead of the policy's `table.method`.
        seed: makes the release repeatable, for tests only.
        despite: publish although some persons stand in other publications; the release says so.

    Raises:
        GuaranteeError: the policy cannot be met, or some of the persons stand in another publication.
    """
    method = method or policy.table.method
    what = f"{digest(table)} {policy.hash} {method}"
    if pinned := publisher_class("table", method).pinned(policy):
        store.house(pinned)  # another veil over the same truth is refused as such
    names = [name for name in store.publishers() if name.startswith(_NAME)]
    for name in names:
        if store.row(name)["position"] == what:
            entry = next(store.outbox(name))
            return stamped(from_bytes(entry.payload), store, name, entry.number)
    name = f"{_NAME}{len(names) + 1}"
    population = Population(store, name, policy, kind="table", method=method, despite=despite)
    persons = population.of_table(table)
    population.refuse_shared(persons)
    passed = tables.publish(
        table, policy, method=method, seed=seed, store=store, not_covered=(DESPITE,) if population.shared else ()
    )
    population.refuse_parted(passed.sights)
    store.register(name, policy_hash=policy.hash)
    with store.lock(name), store.transaction() as tx:
        kept = passed.keep(tx, name, position=what, sent=True)
        population.record(tx, persons, passed.sights)
    return stamped(replace(passed.release), store, name, kept.entry.number - 1)
