"""Sections of a policy: one for each kind of release, `person`, and `prior`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from reticent.policy.spec import FileRef, KindSection, Section, validation_error

Loss = Literal["loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy"]


class SupervisionSettings(Section):
    """How `method: supervised` measures the utility of attributes."""

    target: str | None = Field(default=None, description="column to predict; default: the sensitive column")
    sample: int = Field(default=2000, ge=30, description="records drawn to build the utility tree")
    folds: int = Field(default=3, ge=2, description="folds of the cross-validation")
    kernel: Literal["rbf", "linear"] = Field(default="rbf", description="kernel of the support vector machine")
    recoding: Literal["global", "local", "optimal"] = Field(
        default="optimal",
        description="optimal: utility ranks as weights of the exact search; global and local: as in the paper",
    )


class TableSettings(KindSection):
    """How one table is released."""

    method: Literal["auto", "optimal", "supervised", "local", "mondrian", "anatomy", "veil"] = "auto"
    loss: Loss = "loss"
    purpose: Literal["counts", "model"] | None = Field(
        default=None, description="criterion of `auto`: error of counts, or accuracy of a classifier; default: the loss"
    )
    target: str | None = Field(default=None, description="column that the classifier of `purpose: model` predicts")
    important: list[str] = Field(default_factory=list, description="quasi-identifiers with fourfold weight")
    gs_factor: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="balance of the loss: 0 ignores suppression, 1 ignores generalization, 0.5 weighs both equally",
    )
    weights: dict[str, float] = Field(
        default_factory=dict, description="weight of a quasi-identifier in the loss; default: 1"
    )
    time_limit: float = Field(
        default=60, gt=0, description="seconds after which the search returns its best result and the proved bound"
    )
    memory_limit: int = Field(
        default=1000,
        ge=1,
        description="megabytes that a search may use in addition to the table; then it stops as at the time limit",
    )
    cuts: Literal["strict", "relaxed"] = Field(default="strict", description="how Mondrian cuts equal values")
    sets: bool | None = Field(
        default=None,
        description="whether Mondrian publishes sets and intervals of values instead of hierarchy nodes; default: only for "
        "columns without a hierarchy, and `auto` tries both",
    )
    supervision: SupervisionSettings = SupervisionSettings()

    @property
    def keeps(self) -> str:
        """Generalized groups satisfy k, l and t; Anatomy and the veil publish quasi-identifiers unchanged."""
        return "l" if self.method in ("anatomy", "veil") else "klt"

    @field_validator("weights")
    @classmethod
    def _check_weights(cls, value: dict[str, float]) -> dict[str, float]:
        if any(weight < 0 for weight in value.values()) or (value and max(value.values()) <= 0):
            raise validation_error("weights must be 0 or more, and at least one must be above 0.")
        return value


class EvolvingSettings(KindSection):
    """How an evolving table is maintained and published."""

    method: Literal["veil", "indexed", "enc", "encc", "eac", "red"] = "veil"
    l: int | None = Field(default=None, ge=2, description="l of this kind; must not be less than l of privacy")
    record: str | None = Field(default=None, description="identifier column that names one record; default: the person")


class SeriesSettings(KindSection):
    """How a series of releases of the same persons is published."""

    method: Literal["veil", "m-distinct", "m-distinct*", "m-invariance", "l-diversity"] = "veil"
    m: int | None = Field(
        default=None, ge=2, description="distinct sensitive values per group; default: l of privacy, but at least 4"
    )
    max_risk: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="highest probability that any value of a person may reach for the attacker; default: 0.5",
    )
    max_withheld: float = Field(
        default=0.5, ge=0, le=1, description="largest share of records that may be withheld from a release"
    )
    spread: bool = Field(
        default=True,
        description="if possible, first groups of m-distinct contain values that can never change to one another",
    )

    @property
    def keeps(self) -> str:
        """Only l-diversity generalizes, so only its releases can also satisfy k and t."""
        return "klt" if self.method == "l-diversity" else "l"

    @property
    def limit(self) -> float:
        """The risk that no release may exceed."""
        return 0.5 if self.max_risk is None else self.max_risk


class StreamSettings(KindSection):
    """How a stream is published."""

    method: Literal["veil", "delay-free", "castle"] = "veil"
    l: int | None = Field(default=None, ge=2, description="l of this kind; must not be less than l of privacy")
    retire_after: int = Field(default=1_000_000, ge=0, description="records after which a group is closed; 0: never")
    # delay-free
    pool: Literal["matched", "empirical", "uniform"] = "matched"
    generation: Literal["distinct", "literal"] = "distinct"
    draw_limit: int = Field(default=5_000, ge=1, description="draws after which `generation: literal` gives up")
    # castle
    delta: int = Field(default=1_000, ge=1, description="later records that a record may wait for")
    beta: int = Field(default=50, ge=1, description="clusters that may be open at the same time")
    mu: int = Field(default=100, ge=1, description="published clusters whose average loss is the threshold")
    reuse: int = Field(default=256, ge=0, description="published clusters kept for reuse")

    @property
    def keeps(self) -> str:
        """CASTLE generalizes; the other methods publish quasi-identifiers unchanged."""
        return "kl" if self.method == "castle" else "l"


class PersonSettings(Section):
    """The column that identifies a person across records; the short form is the column alone."""

    short_key = "column"

    column: str = Field(description="column that identifies a person across records; never released")
    records: Literal["all", "first", "last"] = Field(
        default="all", description="which records of a person are released"
    )
    events: str | None = Field(
        default=None,
        description="column with the time or visit number of a record; a repeated one counts as the same event",
    )

    @model_serializer
    def _to_plain(self) -> str | dict[str, str]:
        plain = {"column": self.column, "records": self.records, "events": self.events}
        usual = {"records": "all", "events": None}
        settings = {word: text for word, text in plain.items() if text is not None and text != usual.get(word)}
        return self.column if set(settings) == {"column"} else settings


class PriorSettings(Section):
    """The prior of the veil, and the settings that the store pins on first use."""

    file: str | None = Field(
        default=None, description="CSV file of past counts: value,count, or by columns,value,count"
    )
    by: tuple[str, ...] = Field(default=(), description="published columns that define the strata of the prior")
    epsilon: float | None = Field(
        default=None, gt=0, description="privacy loss of the prior; must agree with the prior's report"
    )
    warmup: int | None = Field(
        default=None,
        ge=100,
        description="first records of a stream that wait until `file` is created from them, if it does not exist",
    )
    counts: float | None = Field(
        default=None,
        gt=0,
        description="epsilon of noisy counts by stratum and value, published with a veiled table for better estimates",
    )
    value_order: Literal["random", "hierarchy"] = Field(
        default="random",
        description="value order on the veil's cumulative line; hierarchy keeps every node near its share",
    )
    household: str | None = Field(
        default=None, description="household column, for contagious or inherited values; members share a draw"
    )
    kernel: FileRef | None = Field(default=None, description="transition kernel: CSV file of value,next,probability")
    link: bool | None = Field(default=None, description="publish a pseudonym of the person; default: only for series")

    @model_validator(mode="after")
    def _check_source(self) -> PriorSettings:
        if self.file is None and self.warmup is not None:
            raise validation_error("warmup also needs file: the name under which the prior is saved.")
        return self
