"""The content types that records and tables come in."""

from __future__ import annotations

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


def media_type(header: str | None) -> str:
    """The type alone, without parameters."""
    return (header or "").partition(";")[0].strip().lower()
