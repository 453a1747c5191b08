"""Releases one table, once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from reticent.encode.columns import normalize_names
from reticent.engine import publisher, publisher_class
from reticent.engine.rng import Rng
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.publication.gate import VerifiedRelease, pass_gate
from reticent.publication.identifier_variants import warn_of_variants

if TYPE_CHECKING:
    from reticent._core.table import CancellationToken
    from reticent.store import Store


def publish(
    table: pa.Table,
    policy: Policy,
    *,
    method: str | None = None,
    seed: int | None = None,
    store: Store | None = None,
    not_covered: tuple[str, ...] = (),
    cancellation: CancellationToken | None = None,
) -> VerifiedRelease:
    """Release a table with exactly the columns of the policy, and verify the result.

    The store keeps the veil key, for methods that need one; `not_covered` adds statements of what the release does not cover;
    `cancellation` reports the progress of the search, and another thread may cancel it.

    Raises:
        GuaranteeError: the policy cannot be met.
        UnwantedError: the search was cancelled.
    """
    method = method or policy.table.method
    if policy.person is not None and policy.person in table.column_names:
        warn_of_variants(normalize_names(table.column(policy.person)))
    rng = _keys(policy, method, store) if seed is None else Rng.from_seed(seed)
    engine = publisher(policy, "table", method, rng=rng)
    if cancellation is not None:
        engine.use_cancellation(cancellation)
    engine.push(table)
    (release,) = engine.close()
    return pass_gate(
        release,
        policy,
        "table",
        members=engine.members(),
        original=engine.original(),
        events=engine.shown_events(),
        not_covered=not_covered,
    )


def _keys(policy: Policy, method: str, store: Store | None) -> Rng:
    """Return fresh keys, with the veil key of the store if the method needs one."""
    digest = publisher_class("table", method).pin_digest(policy)
    if not digest:
        return Rng.fresh()
    if store is None:
        raise PolicyError(
            f"The method {method} needs a store for its key: a new key would veil the same people differently next time.",
            hint="Add --store with a file that your institution keeps and uses for all its releases.",
        )
    return replace(Rng.fresh(), veil_secret=store.veil_key(digest, binding=False))
