"""The `table` section: one table, released once."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from reticent.policy.section import Section

Loss = Literal["loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy"]


class SupervisionSettings(Section):
    """How the utility of attributes is measured, for `method: supervised`."""

    target: str | None = Field(default=None, description="column the classifier predicts; the sensitive one by default")
    sample: int = Field(default=2000, ge=30, description="records drawn to build the utility tree")
    folds: int = Field(default=3, ge=2, description="folds of the cross-validation")
    kernel: Literal["rbf", "linear"] = Field(default="rbf", description="kernel of the support vector machine")
    recoding: Literal["global", "local", "optimal"] = Field(
        default="local",
        description="global and local as in the paper; optimal: the same order as weights of the search",
    )


class TableSettings(Section):
    """How one table is released."""

    renamed: ClassVar[dict[str, str]] = {"model": "method", "strategy": "method"}

    method: Literal["optimal", "supervised", "local", "mondrian", "anatomy", "veil"] = "optimal"
    loss: Loss = "loss"
    weights: dict[str, float] = Field(
        default_factory=dict, description="importance of a quasi-identifier in the loss; 1 where none is given"
    )
    time_limit: float | None = Field(
        default=None,
        gt=0,
        description="seconds after which the search gives its best answer and the bound it has proved",
    )
    cuts: Literal["strict", "relaxed"] = Field(default="strict", description="how Mondrian cuts equal values")
    supervision: SupervisionSettings = SupervisionSettings()

    @property
    def keeps(self) -> str:
        """Groups of generalised records keep all three; Anatomy and the veil publish quasi-identifiers as they are."""
        return "l" if self.method in ("anatomy", "veil") else "klt"

    @field_validator("weights")
    @classmethod
    def _positive(cls, value: dict[str, float]) -> dict[str, float]:
        if any(weight < 0 for weight in value.values()) or (value and max(value.values()) <= 0):
            raise PydanticCustomError("weights", "weights must not be negative, and one must be above 0.")
        return value
