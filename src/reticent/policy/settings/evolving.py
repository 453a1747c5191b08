"""The `evolving` section: a table that gains, loses and corrects rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import Section


class PriorFile(Section):
    """A table `value,count` of the past, beside the policy."""

    file: str


class EvolvingSettings(Section):
    """How an evolving table is maintained and published."""

    strategy: Literal["sealed", "indexed", "enc", "encc", "eac", "red"] = "sealed"
    l: int = Field(default=10, ge=2)
    record: str | None = Field(default=None, description="identifier column that names one record; default: the person")
    prior: PriorFile | None = Field(default=None, description="design prior of sealed; default: the first load")
