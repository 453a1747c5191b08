"""`reticent demo`: a hospital table, released and verified, in plain words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where the files go; default: a new folder under demo-out/.", show_default=False
        ),
    ] = None,
    rows: Annotated[int, typer.Option(help="Size of the hospital.", min=1000)] = 20_000,
) -> None:
    """Make a hospital, release it in every way, and verify each.

    Says what it does, command by command.
    """
    from reticent.cli.demo_steps import show_steps

    if output is None:
        Path("demo-out").mkdir(exist_ok=True)
        output = Path(tempfile.mkdtemp(prefix="demo-", dir="demo-out"))
    show_steps(output, rows)
