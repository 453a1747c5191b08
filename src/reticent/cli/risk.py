"""`reticent risk`: before any policy, who could be singled out in a table as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json


def risk(
    data: Annotated[
        str,
        typer.Argument(help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; a database URL.", show_default=False),
    ],
    quasi: Annotated[
        str | None, typer.Option(help="Columns that others may know, by commas; guessed otherwise.", show_default=False)
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="What nobody should learn, by commas; guessed otherwise.", show_default=False)
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="The column that names the person; guessed otherwise.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it into this .svg file.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Say who could be singled out in a table as it is.

    Needs no policy. Counts persons where a column names them, records otherwise. Changes and keeps nothing.
    """
    from reticent.api import risk as measure
    from reticent.cli.output import emit, say
    from reticent.cli.progress import working
    from reticent.connectors.files import write_text

    with working("Counting"):
        measured = measure(data, quasi=_names(quasi), sensitive=_names(sensitive), person=person)
    say(repr(measured))
    say("Next: reticent init DATA -o policy.yaml")
    if plot is not None:
        write_text(plot, measured.drawing())
        say(f"Drawn into {plot}.")
    if json:
        emit(measured.to_dict())


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
