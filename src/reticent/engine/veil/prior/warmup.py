"""A prior for a stream without a past: its first records wait once, and are counted under a stated epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.engine.veil.prior.released import fit_released
from reticent.policy import Policy
from reticent.policy.settings.kinds import PriorSettings

if TYPE_CHECKING:
    from reticent.engine.veil.prior.fitted import FittedPrior

USUAL_EPSILON = 1.0
"""Where the policy names none."""


def kernel_to_make(policy: Policy) -> Path | None:
    """The kernel's file that the policy names, unless it is there."""
    named = policy.prior.kernel if policy.prior is not None else None
    path = None if named is None else policy.path(named.file)
    return None if path is None or path.exists() else path


def fit_warmup(policy: Policy, table: pa.Table, rng: np.random.Generator) -> FittedPrior:
    """The prior of the records that waited.

    Guarantee: that of `fit_released`, with `prior.by` at its published levels, or columns of its own choice, and the policy's epsilon; with a kernel where the policy
    names a file for it that is not there yet.

    Args:
        policy: names the columns to condition on under `prior.by`.
        table: the first records of the stream; they are released under this prior afterwards.
        rng: of the noise.
    """
    settings = policy.prior or PriorSettings()
    return fit_released(
        table,
        policy,
        l=policy.l_of("stream"),
        by=settings.by or None,
        epsilon=settings.epsilon or USUAL_EPSILON,
        kernel=kernel_to_make(policy) is not None,
        rng=rng,
    )
