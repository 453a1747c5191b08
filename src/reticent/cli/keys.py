"""`reticent keys`: create and rotate the key files of pseudonyms and date shifts."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import say

app = options.OrderedGroup(help="Create or rotate the key file of pseudonyms and date shifts.")

key_file = click.argument("file", type=options.PATH, help="The key file. Keep it as safe as the data.")


@app.command()
@key_file
def new(file: Path) -> None:
    """Create a key file that only you can read."""
    from reticent.engine.keys import new as make

    make(file)
    say(f"A new key is in {file}. Anyone who has it can compute the pseudonyms; keep it secret.")


@app.command()
@key_file
def rotate(file: Path) -> None:
    """Switch to a new key, so that later pseudonyms cannot be linked with earlier ones.

    The file keeps the earlier keys.
    """
    from reticent.engine.keys import rotate as rotate_key

    keys = rotate_key(file)
    say(f"Key {keys.current} is now in use; {file} keeps {len(keys.keys) - 1} earlier ones.")
