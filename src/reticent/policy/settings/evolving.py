"""The `evolving` section: a table that gains, loses and corrects rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import KindSection


class EvolvingSettings(KindSection):
    """How an evolving table is maintained and published."""

    method: Literal["veil", "indexed", "enc", "encc", "eac", "red"] = "veil"
    l: int | None = Field(default=None, ge=2, description="stricter than that of privacy; never laxer")
    record: str | None = Field(default=None, description="identifier column that names one record; default: the person")
