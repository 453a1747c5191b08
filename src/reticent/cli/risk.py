"""`reticent risk`: before any policy, who could be singled out in a table as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say, show_progress


@click.command()
@options.data
@click.option("--quasi", help="Columns that others may know, by commas; guessed otherwise.")
@click.option("--sensitive", help="What nobody should learn, by commas; guessed otherwise.")
@click.option("--person", help="The column that names the person; guessed otherwise.")
@click.option("--plot", type=options.PATH, help="Draw it into this .svg file.")
@options.json
def risk(
    data: str, quasi: str | None, sensitive: str | None, person: str | None, plot: Path | None, json: bool
) -> None:
    """Say who could be singled out in a table as it is.

    Needs no policy. Counts persons where a column names them, records otherwise. Changes and keeps nothing.
    """
    from reticent.api import risk as measure
    from reticent.connectors.files import write_text

    with show_progress("Counting"):
        measured = measure(data, quasi=_names(quasi), sensitive=_names(sensitive), person=person)
    say(repr(measured))
    say(f"Next: {shlex.join(['reticent', 'init', data, '-o', 'policy.yaml'])}")
    if plot is not None:
        write_text(plot, measured.to_svg())
        say(f"Drawn into {plot}.")
    if json:
        emit(measured.to_dict())


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
