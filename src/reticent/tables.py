"""One table, once: the function behind `reticent anonymize`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.audit import verify
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy
    from reticent.release import Release


def anonymize(table: pa.Table, policy: Policy, *, method: str | None = None, seed: int | None = None) -> Release:
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
    verdict = verify([release], policy)
    if not verdict.holds:
        raise InternalError(
            f"The judge refuted the release ({', '.join(f.claim for f in verdict.findings if not f.holds)})."
        )
    return release
