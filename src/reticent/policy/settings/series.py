"""The `series` section: the same persons, published again after their records changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import KindSection


class SeriesSettings(KindSection):
    """How a series of releases of the same persons is made."""

    method: Literal["veil", "m-distinct", "m-distinct*", "m-invariance", "l-diversity"] = "veil"
    m: int | None = Field(
        default=None,
        ge=2,
        description="different sensitive values per group; l of privacy, or 4, where none is written",
    )
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

    @property
    def keeps(self) -> str:
        """l-diversity generalises each release by itself."""
        return "klt" if self.method == "l-diversity" else "l"

    @property
    def limit(self) -> float:
        """The risk no release may exceed."""
        return 0.5 if self.max_risk is None else self.max_risk
