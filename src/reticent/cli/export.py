"""`reticent export`: a release folder into the tables of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json


def export(
    release: Annotated[Path, typer.Argument(metavar="DIR", help="A release folder, or a stream's file.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://... or sqlite:///file.db.")],
    name: Annotated[str, typer.Option(help="Tables are called NAME_data and so on.")] = "release",
    json: Json = False,
) -> None:
    """Write a release into tables of a database.

    All of them in one transaction, or nothing.
    """
    from reticent.cli.output import emit, say
    from reticent.connectors.sql import write_release

    tables = write_release(release, url, name=name)
    say(f"Written: {', '.join(tables)}.")
    if json:
        emit({"tables": list(tables)})
