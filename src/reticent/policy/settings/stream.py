"""The `stream` section: a feed whose records cannot wait."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import KindSection


class StreamSettings(KindSection):
    """How a feed is released."""

    method: Literal["veil", "delay-free", "castle"] = "veil"
    l: int | None = Field(default=None, ge=2, description="stricter than that of privacy; never laxer")
    retire_after: int = Field(default=1_000_000, ge=0, description="records after which nobody joins a group; 0: never")
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
