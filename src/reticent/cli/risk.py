"""`reticent risk`: before any policy, who could be singled out in a table as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.options import Json

if TYPE_CHECKING:
    from reticent.audit.risk.singling_out import SinglingOut


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
    from reticent.report.singling_out import drawing

    with working("Counting"):
        measured = measure(data, quasi=_names(quasi), sensitive=_names(sensitive), person=person)
    for line in lines(measured):
        say(line)
    if plot is not None:
        write_text(plot, drawing(measured))
        say(f"Drawn into {plot}.")
    if json:
        emit(measured.to_dict())


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def lines(measured: SinglingOut) -> list[str]:
    """The figures on one screen."""
    whom = f"{measured.persons:,} persons" + (
        f" with {measured.records:,} records" if measured.records != measured.persons else ""
    )
    text = [f"{whom}; known to others: {', '.join(measured.quasi) or 'no column'}."]
    if not measured.quasi or not measured.persons:
        return text
    text.append(f"{measured.alone:.1%} stand alone, {measured.small:.1%} with fewer than 5 like them.")
    text.append("Who knows ...")
    width = max(len(step.column) for step in measured.steps)
    for number, step in enumerate(measured.steps):
        word = "and " if number else "    "
        text.append(f"  {word}{step.column:<{width}}  singles out {step.alone:6.1%}  {_bar(step.alone)}")
    text += [
        f"'{name}' is plain for {share:.1%}: everybody who fits has the same." for name, share in measured.told.items()
    ]
    text.append("Next: reticent init DATA -o policy.yaml")
    return text


def _bar(share: float) -> str:
    return "█" * round(share * 30)
