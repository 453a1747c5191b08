"""The `stream` section: a feed whose records cannot wait."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reticent.policy.section import Section


class FileRef(Section):
    """A file beside the policy."""

    file: str


class StreamSettings(Section):
    """How a feed is released."""

    method: Literal["sealed", "delay-free", "castle"] = "sealed"
    l: int = Field(default=10, ge=2)
    prior: FileRef | None = None
