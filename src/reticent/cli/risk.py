"""`reticent risk`: measure who could be singled out in a table, without a policy."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say, show_progress


@click.command()
@options.data
@click.option("--quasi", help="Columns that an attacker may know, separated by commas; default: guessed.")
@click.option("--sensitive", help="Columns to protect, separated by commas; default: guessed.")
@click.option("--person", help="Column that identifies the person; default: guessed.")
@click.option("--plot", type=options.PATH, help="Write a plot to this SVG file.")
@options.json
def risk(
    data: str, quasi: str | None, sensitive: str | None, person: str | None, plot: Path | None, json: bool
) -> None:
    """Measure how many people could be singled out in a table.

    Needs no policy. Counts people if a column identifies them, and records otherwise. Changes nothing and stores nothing.
    """
    from reticent.api import risk as measure
    from reticent.connectors.files import write_text

    with show_progress("Counting"):
        result = measure(data, quasi=_names(quasi), sensitive=_names(sensitive), person=person)
    say(repr(result))
    say(f"Next: {shlex.join(['reticent', 'init', data, '-o', 'policy.yaml'])}")
    if plot is not None:
        write_text(plot, result.to_svg())
        say(f"Plot written to {plot}.")
    if json:
        emit(result.to_dict())


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
