"""The `series` section: the same persons, published again after their records changed."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from reticent.policy.section import Section


class DesignPrior(Section):
    """How frequent sensitive values are taken to be: a file of value,count beside the policy."""

    file: str


class SeriesSettings(Section):
    """How a series of releases of the same persons is made."""

    model: Literal["sealed", "m-distinct", "m-distinct*", "m-invariance"] = "m-distinct"
    m: int = Field(default=4, ge=2, description="different sensitive values per group")
    max_risk: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="no candidate value of anybody may become more probable than this; 0.5 where nothing is written",
    )
    max_held: float = Field(
        default=0.5, ge=0, le=1, description="largest share of records that may be held back from a release"
    )
    spread: bool = Field(
        default=True,
        description="first groups of m-distinct take values that can never become one another, where possible",
    )
    prior: DesignPrior | None = Field(default=None, description="sealed: value,count of the past")

    @property
    def limit(self) -> float:
        """The risk no release may exceed."""
        return 0.5 if self.max_risk is None else self.max_risk

    @property
    def size(self) -> int:
        """Members of a first group: at least m, and enough that one of them alone stays within the limit."""
        return max(self.m, math.ceil(1 / self.limit - 1e-9))
