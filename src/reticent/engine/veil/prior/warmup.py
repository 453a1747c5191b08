"""A prior for a stream without a past: its first records wait once, and are counted under a stated epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.engine.veil.prior.fit import fit_released

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from reticent.engine.veil.prior.fit import FittedPrior
    from reticent.policy import Policy

USUAL_EPSILON = 1.0
"""Where the policy names none."""


def fit_warmup(policy: Policy, table: pa.Table, rng: np.random.Generator) -> FittedPrior:
    """The prior of the records that waited.

    Guarantee: that of `fit_released`, with `prior.by` at its published levels and the policy's epsilon.

    Args:
        policy: names the columns to condition on under `prior.by`.
        table: the first records of the stream; they are released under this prior afterwards.
        rng: of the noise.
    """
    settings = policy.prior
    epsilon = (settings.epsilon if settings is not None else None) or USUAL_EPSILON
    by = settings.by if settings is not None else ()
    return fit_released(table, policy, policy.sensitive[0], l=policy.l_of("stream"), by=by, epsilon=epsilon, rng=rng)
