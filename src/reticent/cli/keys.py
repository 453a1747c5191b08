"""`reticent keys`: the key files behind pseudonyms and date shifts."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import say

app = options.OrderedGroup(help="Make or rotate the key file of pseudonyms and date shifts.")

key_file = click.argument("file", type=options.PATH, help="The key file; keep it as safe as the data itself.")


@app.command()
@key_file
def new(file: Path) -> None:
    """Write a key file with one fresh key, readable by you alone."""
    from reticent.engine.keys import new as make

    make(file)
    say(f"A fresh key is in {file}. Whoever has it can compute the pseudonyms; without it nobody can.")


@app.command()
@key_file
def rotate(file: Path) -> None:
    """Put a fresh key in use: later pseudonyms cannot be linked with earlier ones. Earlier keys are kept."""
    from reticent.engine.keys import rotate as turn

    keys = turn(file)
    say(f"The key {keys.current} is in use now; {len(keys.keys) - 1} earlier ones are kept in {file}.")
