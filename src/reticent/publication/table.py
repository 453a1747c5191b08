"""One table, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.publication.gate import Passed, let_through

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy


def publish(table: pa.Table, policy: Policy, *, method: str | None = None, seed: int | None = None) -> Passed:
    """Releases a table under a policy; the judge has checked what comes back.

    Args:
        table: exactly the columns of the policy.
        policy: roles and requirements.
        method: instead of the policy's `table.method`.
        seed: makes the release repeatable, for tests only.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    rng = Rng.fresh() if seed is None else Rng.from_seed(seed)
    engine = publisher(policy, "table", method or policy.table.method, rng=rng)
    engine.push(table)
    (release,) = engine.close()
    return let_through(release, policy, "table", members=engine.members())
