"""The `prior` section: what a reader is assumed to know already, and how the veil is drawn over it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from reticent.policy.section import FileRef, Section, wrong


class PriorSettings(Section):
    """Where the veil's prior comes from, and the settings that its key pins for life."""

    file: str | None = Field(default=None, description="value,count of the past, or by columns, value, count")
    by: tuple[str, ...] = Field(default=(), description="the published columns that the prior depends on")
    epsilon: float | None = Field(
        default=None, gt=0, description="privacy loss that the prior has cost; its report says it too, and must agree"
    )
    warmup: int | None = Field(
        default=None, ge=100, description="records of a stream that wait once, to make `file` where it is not there yet"
    )
    totals: float | None = Field(
        default=None,
        gt=0,
        description="epsilon of a noisy table of counts by row and value, published with a veiled table for better counts",
    )
    order: Literal["random", "hierarchy"] = Field(
        default="random", description="of the values on the veil's line; hierarchy keeps every node near its share"
    )
    unit: str | None = Field(default=None, description="household column, where values are contagious or inherited")
    kernel: FileRef | None = Field(default=None, description="how values follow one another: value,next,probability")
    link: bool | None = Field(default=None, description="publish a pseudonym of the person; default for series only")

    @model_validator(mode="after")
    def _from_somewhere(self) -> PriorSettings:
        if self.file is None and self.warmup is not None:
            raise wrong("write file beside warmup: where the prior of the first records is kept.")
        return self
