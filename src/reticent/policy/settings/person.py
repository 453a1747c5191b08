"""The `person` section: who is who across records, and which of a person's records count."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_serializer

from reticent.policy.section import Section


class PersonSettings(Section):
    """The column that names the same person across records; the short form is the column alone."""

    short = "column"

    column: str = Field(description="names the same person across records; never released")
    records: Literal["all", "first", "last"] = Field(
        default="all", description="which records of a person are released"
    )
    events: str | None = Field(
        default=None,
        description="time or visit number: the order of a person's records; the same again is the same fact",
    )

    @model_serializer
    def _plain(self) -> str | dict[str, str]:
        plain = {"column": self.column, "records": self.records, "events": self.events}
        usual = {"records": "all", "events": None}
        settings = {word: text for word, text in plain.items() if text is not None and text != usual.get(word)}
        return self.column if set(settings) == {"column"} else settings
