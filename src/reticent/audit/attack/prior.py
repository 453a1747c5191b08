"""The prior a policy publishes: how often each value occurred in the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.policy.prior import read_prior

if TYPE_CHECKING:
    from reticent.policy import Policy
    from reticent.policy.prior import Counts


def prior_counts(policy: Policy) -> Counts | None:
    """Value -> count of the past from the policy's prior; None when it names no file."""
    file = policy.prior.file if policy.prior is not None else None
    return None if file is None else read_prior(policy.path(file), "prior")
