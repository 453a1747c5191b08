"""The `table` section: one table, released once."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from reticent.policy.section import KindSection, Section, wrong

Loss = Literal["loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy"]


class SupervisionSettings(Section):
    """How the utility of attributes is measured, for `method: supervised`."""

    target: str | None = Field(default=None, description="column the classifier predicts; the sensitive one by default")
    sample: int = Field(default=2000, ge=30, description="records drawn to build the utility tree")
    folds: int = Field(default=3, ge=2, description="folds of the cross-validation")
    kernel: Literal["rbf", "linear"] = Field(default="rbf", description="kernel of the support vector machine")
    recoding: Literal["global", "local", "optimal"] = Field(
        default="optimal",
        description="optimal: the utility order as weights of the exact search; global and local as in the paper",
    )


class TableSettings(KindSection):
    """How one table is released."""

    method: Literal["auto", "optimal", "supervised", "local", "mondrian", "anatomy", "veil"] = "auto"
    loss: Loss = "loss"
    purpose: Literal["counts", "model"] | None = Field(
        default=None,
        description="what `auto` chooses by: the error of counts, or what a classifier learns; the loss where none is given",
    )
    target: str | None = Field(default=None, description="column that the classifier of `purpose: model` predicts")
    important: list[str] = Field(default_factory=list, description="quasi-identifiers that weigh four times the others")
    gs_factor: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="weight of suppression (nothing at 0) against generalisation (nothing at 1) in the loss; 0.5: both alike",
    )
    weights: dict[str, float] = Field(
        default_factory=dict, description="importance of a quasi-identifier in the loss; 1 where none is given"
    )
    time_limit: float = Field(
        default=60,
        gt=0,
        description="seconds after which the search gives its best answer and the bound it has proved",
    )
    memory_limit: int = Field(
        default=1000,
        ge=1,
        description="megabytes that a search may keep beside the table; then it ends as at its time limit",
    )
    cuts: Literal["strict", "relaxed"] = Field(default="strict", description="how Mondrian cuts equal values")
    sets: bool | None = Field(
        default=None,
        description="whether Mondrian publishes sets of values and intervals instead of nodes of a tree; where nothing is said, "
        "only columns without a hierarchy, and `auto` tries both",
    )
    supervision: SupervisionSettings = SupervisionSettings()

    @property
    def keeps(self) -> str:
        """Groups of generalised records keep all three; Anatomy and the veil publish quasi-identifiers as they are."""
        return "l" if self.method in ("anatomy", "veil") else "klt"

    @field_validator("weights")
    @classmethod
    def _positive(cls, value: dict[str, float]) -> dict[str, float]:
        if any(weight < 0 for weight in value.values()) or (value and max(value.values()) <= 0):
            raise wrong("weights must not be negative, and one must be above 0.")
        return value
