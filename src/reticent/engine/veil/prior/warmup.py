"""A prior for a stream without a past: its first records wait once, and are counted under a stated epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reticent.engine.veil.prior.file import strata_of
from reticent.engine.veil.prior.fit import fit_released
from reticent.engine.veil.prior.report import figures

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from reticent.policy import Policy
    from reticent.policy.prior import Prior

USUAL_EPSILON = 1.0
"""Where the policy names none."""


def prior_of_warmup(
    policy: Policy, table: pa.Table, epsilon: float | None, rng: np.random.Generator
) -> tuple[Prior, dict[str, Any]]:
    """The prior of the records that waited, and its figures: what `House.of_strata` takes.

    Guarantee: that of `fit_released`, with `prior.by` at its published levels.

    Args:
        policy: names the columns to condition on under `prior.by`.
        table: the first records of the stream; they are released under this prior afterwards.
        epsilon: of the noise; the policy's, or 1.
        rng: of the noise.
    """
    settings = policy.prior
    stated = epsilon or (settings.epsilon if settings is not None else None) or USUAL_EPSILON
    fitted = fit_released(
        table,
        policy,
        policy.sensitive[0],
        l=policy.l_of("stream"),
        by=settings.by if settings is not None else (),
        epsilon=stated,
        rng=rng,
    )
    return strata_of(fitted.prior), figures(fitted)
