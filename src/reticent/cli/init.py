"""`reticent init`: look at the data, guess roles, build hierarchies, explain each guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.options import Json

if TYPE_CHECKING:
    from reticent.policy.guess import Guess


def init(
    data: Annotated[
        str,
        typer.Argument(help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; a database URL.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy file to write.")] = Path("policy.yaml"),
    json: Json = False,
) -> None:
    """Look at the data, guess roles and hierarchies, explain each guess, and write a policy to correct."""
    from reticent.cli.output import emit, say
    from reticent.connectors.files import atomic_file
    from reticent.connectors.inputs import read_input_head, section_for
    from reticent.errors import ConnectorError
    from reticent.policy import Policy
    from reticent.policy.guess import SAMPLE, guess, guess_person

    if output.exists():
        raise ConnectorError(f"{output} exists.", hint="Give another file to --output.")
    guesses = guess(read_input_head(data, SAMPLE))
    person = guess_person(guesses)
    text = render(guesses, person, section_for(data))
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


def render(guesses: list[Guess], person: str | None, section: str | None = None) -> str:
    """The policy as text, each guess with its reason."""
    import json

    lines = [
        "# Guessed from the data: read every line and correct it. When in doubt a column is a quasi-identifier.",
        "version: 1",
    ]
    if person:
        lines.append(f"person: {json.dumps(person)}   # the same person across records; never released")
    if section:
        lines.append(f"{section}   # how the data becomes a table")
    lines.append("columns:")
    for g in guesses:
        what = g.role if g.hierarchy is None else f"{{role: {g.role}, hierarchy: {json.dumps(g.hierarchy)}}}"
        lines.append(f"  {json.dumps(g.column)}: {what}   # {g.why}")
    wide = any(g.role == "sensitive" and g.distinct >= 3 for g in guesses)
    lines.append(f"privacy: {{k: 5, {'l: 3, ' if wide else ''}suppression: 0.02}}")
    return "\n".join(lines) + "\n"
