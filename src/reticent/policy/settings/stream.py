"""The `stream` section: a feed whose records cannot wait."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from reticent.policy.section import Section


class StreamSettings(Section):
    """How a feed is released."""

    renamed: ClassVar[dict[str, str]] = {"model": "method", "strategy": "method"}
    moved: ClassVar[dict[str, str]] = {"prior": "prior: {file: ...}"}

    method: Literal["sealed", "delay-free", "castle"] = "sealed"
    l: int | None = Field(default=None, ge=2, description="stricter than that of privacy; never laxer")
    retire_after: int = Field(default=1_000_000, ge=0, description="records after which nobody joins a group; 0: never")
    # sealed
    copies: int = Field(default=1, ge=1, le=64, description="slots per group divided by l")
    provision: float | None = Field(
        default=None, ge=0, description="open groups ahead of need, by this many deviations"
    )
    other: str = Field(default="other", min_length=1, description="published in place of values the design lacks")
    epochs: Literal["auto", "fixed"] = Field(default="auto", description="redesign when the stream drifts, or never")
    window: int = Field(default=10_000, ge=100, description="records between two looks at the drift")
    drift: float = Field(default=1.5, gt=1, description="rise of the forced-open rate that counts as drift")
    persons: int = Field(default=1_000_000, ge=1, description="persons expected per epoch; more is safe but less exact")
    # delay-free
    pool: Literal["matched", "empirical", "uniform"] = "matched"
    generation: Literal["distinct", "literal"] = "distinct"
    draw_limit: int = Field(default=5_000, ge=1, description="draws after which the literal generation gives up")
    # castle
    delta: int = Field(default=1_000, ge=1, description="records that a record may wait for")
    beta: int = Field(default=50, ge=1, description="clusters that may be open at a time")
    mu: int = Field(default=100, ge=1, description="published clusters whose loss sets the threshold")
    reuse: int = Field(default=256, ge=0, description="published clusters kept for reuse")

    @property
    def keeps(self) -> str:
        """CASTLE generalises; all others publish quasi-identifiers as they are."""
        return "kl" if self.method == "castle" else "l"
