"""One table, once."""

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
    """Releases a table with exactly the columns of the policy; the judge has checked what comes back.

    The store keeps the key of the house, for methods that have one; `not_covered` is what the release must say beside what its method
    says; the watch tells how far the search is, and may be cancelled from another thread.

    Raises:
        GuaranteeError: the policy cannot be met.
        UnwantedError: the watch was cancelled.
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
    """Fresh ones; where the method has a house, with the key that the store keeps for it."""
    digest = publisher_class("table", method).pin_digest(policy)
    if not digest:
        return Rng.fresh()
    if store is None:
        raise PolicyError(
            f"The method {method} needs a store for its key: without it the same persons would be veiled anew next time.",
            hint="Give --store: a file that this house keeps, and uses for all its releases.",
        )
    return replace(Rng.fresh(), veil_secret=store.veil_key(digest, binding=False))
