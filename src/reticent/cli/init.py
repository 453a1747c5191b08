"""`reticent init`: look at the data, guess roles, build hierarchies, explain each guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.options import Json

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy.guess import Guess


def init(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow IPC or NDJSON.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy file to write.")] = Path("policy.yaml"),
    json: Json = False,
) -> None:
    """Look at the data, guess roles and hierarchies, explain each guess, and write a policy to correct."""
    from reticent.cli.output import emit, say
    from reticent.connectors.files import atomic_file
    from reticent.errors import ConnectorError
    from reticent.policy import Policy
    from reticent.policy.guess import SAMPLE, guess, guess_person

    if output.exists():
        raise ConnectorError(f"{output} exists.", hint="Give another file to --output.")
    guesses = guess(_head(data, SAMPLE))
    person = guess_person(guesses)
    text = render(guesses, person)
    with atomic_file(output) as file:
        file.write(text.encode())
    Policy.load(output)
    width = max(len(g.column) for g in guesses)
    for g in guesses:
        say(f"  {g.column:<{width}}  {g.role:<10}  {g.why}")
    say(f"Written to {output}. Read it, correct it, then: reticent policy check {output}")
    if json:
        emit(
            {
                "policy": str(output),
                "person": person,
                "columns": {g.column: {"role": g.role, "why": g.why} for g in guesses},
            }
        )


def _head(data: str, rows: int) -> pa.Table:
    """The first rows: enough to guess from, whatever the size of the file."""
    import pyarrow as pa

    from reticent.connectors.files import read_batches

    found: list[pa.RecordBatch] = []
    for batch in read_batches(data):
        found.append(batch)
        if sum(part.num_rows for part in found) >= rows:
            break
    return pa.Table.from_batches(found).slice(0, rows)


def render(guesses: list[Guess], person: str | None) -> str:
    """The policy as text, each guess with its reason."""
    import json

    lines = [
        "# Guessed from the data: read every line and correct it. When in doubt a column is a quasi-identifier.",
        "version: 1",
    ]
    if person:
        lines.append(f"person: {json.dumps(person)}   # the same person across records; never released")
    lines.append("columns:")
    for g in guesses:
        what = g.role if g.hierarchy is None else f"{{role: {g.role}, hierarchy: {json.dumps(g.hierarchy)}}}"
        lines.append(f"  {json.dumps(g.column)}: {what}   # {g.why}")
    wide = any(g.role == "sensitive" and g.distinct >= 3 for g in guesses)
    lines.append(f"privacy: {{k: 5, {'l: 3, ' if wide else ''}suppression: 0.02}}")
    return "\n".join(lines) + "\n"
