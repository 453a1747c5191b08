"""`reticent demo`: a hospital table, released and verified, in plain words."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from reticent.cli import options


@click.command()
@click.option("--output", "-o", type=options.PATH, help="Where the files go; default: a new folder under demo-out/.")
@click.option("--rows", type=click.IntRange(min=1000), default=20000, help="Size of the hospital.")
def demo(output: Path | None, rows: int) -> None:
    """Make a hospital, release it in every way, and verify each.

    Says what it does, command by command.
    """
    from reticent.cli.demo_steps import show_steps

    if output is None:
        Path("demo-out").mkdir(exist_ok=True)
        output = Path(tempfile.mkdtemp(prefix="demo-", dir="demo-out"))
    show_steps(output, rows)
