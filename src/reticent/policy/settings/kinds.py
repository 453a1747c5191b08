"""Sections of a policy: one for each kind of release, who is who, and what a reader knows already."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from reticent.policy.spec import FileRef, KindSection, Section, validation_error

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
    def _check_weights(cls, value: dict[str, float]) -> dict[str, float]:
        if any(weight < 0 for weight in value.values()) or (value and max(value.values()) <= 0):
            raise validation_error("weights must not be negative, and one must be above 0.")
        return value


class EvolvingSettings(KindSection):
    """How an evolving table is maintained and published."""

    method: Literal["veil", "indexed", "enc", "encc", "eac", "red"] = "veil"
    l: int | None = Field(default=None, ge=2, description="stricter than that of privacy; never laxer")
    record: str | None = Field(default=None, description="identifier column that names one record; default: the person")


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
    max_withheld: float = Field(
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


class PersonSettings(Section):
    """The column that names the same person across records; the short form is the column alone."""

    short_key = "column"

    column: str = Field(description="names the same person across records; never released")
    records: Literal["all", "first", "last"] = Field(
        default="all", description="which records of a person are released"
    )
    events: str | None = Field(
        default=None,
        description="time or visit number: the order of a person's records; the same again is the same fact",
    )

    @model_serializer
    def _to_plain(self) -> str | dict[str, str]:
        plain = {"column": self.column, "records": self.records, "events": self.events}
        usual = {"records": "all", "events": None}
        settings = {word: text for word, text in plain.items() if text is not None and text != usual.get(word)}
        return self.column if set(settings) == {"column"} else settings


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
    counts: float | None = Field(
        default=None,
        gt=0,
        description="epsilon of a noisy table of counts by row and value, published with a veiled table for better counts",
    )
    value_order: Literal["random", "hierarchy"] = Field(
        default="random", description="of the values on the veil's line; hierarchy keeps every node near its share"
    )
    household: str | None = Field(
        default=None, description="household column, where values are contagious or inherited"
    )
    kernel: FileRef | None = Field(default=None, description="how values follow one another: value,next,probability")
    link: bool | None = Field(default=None, description="publish a pseudonym of the person; default for series only")

    @model_validator(mode="after")
    def _check_source(self) -> PriorSettings:
        if self.file is None and self.warmup is not None:
            raise validation_error("write file beside warmup: where the prior of the first records is kept.")
        return self
