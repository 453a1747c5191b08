"""Options that several commands share, spelt the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PolicyFile = Annotated[
    Path, typer.Option("--policy", "-p", help="The policy file (YAML, JSON or TOML).", show_default=False)
]
OutputFolder = Annotated[Path, typer.Option("--output", "-o", help="A new folder for the release.", show_default=False)]
Seed = Annotated[
    int | None, typer.Option(help="Make it repeatable: for tests and reproductions only.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of standard output.")]
Format = Annotated[str, typer.Option("--format", help="csv or parquet.")]
Method = Annotated[
    str | None, typer.Option(help="Instead of the policy's method for this kind of release.", show_default=False)
]

DespiteLedger = Annotated[
    bool,
    typer.Option(
        "--despite-ledger", help="Publish persons who stand in another publication of the store; the release says so."
    ),
]
