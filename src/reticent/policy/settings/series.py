"""The `series` section: the same persons, published again after their records changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import Section


class SeriesSettings(Section):
    """How a series of releases of the same persons is made."""

    model: Literal["sealed", "m-distinct", "m-distinct*", "m-invariance"] = "m-distinct"
    m: int = Field(default=4, ge=2)
    max_risk: float = Field(default=0.25, gt=0, le=1)
