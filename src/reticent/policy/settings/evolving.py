"""The `evolving` section: a table that gains, loses and corrects rows."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from reticent.policy.section import Section
from reticent.policy.settings.gone import refuse_sealed


class EvolvingSettings(Section):
    """How an evolving table is maintained and published."""

    renamed: ClassVar[dict[str, str]] = {"strategy": "method", "model": "method"}
    moved: ClassVar[dict[str, str]] = {"prior": "prior: {file: ...}"}

    method: Annotated[Literal["veil", "indexed", "enc", "encc", "eac", "red"], refuse_sealed] = "veil"
    l: int | None = Field(default=None, ge=2, description="stricter than that of privacy; never laxer")
    record: str | None = Field(default=None, description="identifier column that names one record; default: the person")
