"""`reticent init`: look at the data, guess roles, build hierarchies, explain each guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.options import Json

if TYPE_CHECKING:
    from reticent.cli.kinds import Kind
    from reticent.policy.guess import Guess


def init(
    data: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; HL7 v2 messages; a database URL.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy file to write.")] = Path("policy.yaml"),
    kind: Annotated[
        str, typer.Option("--for", help="The kind of release: table, evolving, series or stream.")
    ] = "table",
    method: Annotated[
        str | None,
        typer.Option(
            help="veil: proposes published levels and makes a prior, too; without it the usual one of the kind."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Look at the data, guess roles, and write a policy to correct.

    Hierarchies are guessed too, and each guess is explained.
    For the veil it proposes published levels and counts a prior on the data, with noise.
    """
    import shlex

    from reticent.cli.kinds import KINDS, kind_for
    from reticent.cli.output import emit, say
    from reticent.cli.veil_policy import VEIL, method_of, veil_kind
    from reticent.connectors.files import write_text
    from reticent.connectors.inputs import is_hl7, read_input_head, section_for
    from reticent.errors import ConnectorError, PolicyError
    from reticent.policy import Policy
    from reticent.policy.guess import SAMPLE, guess, guess_person
    from reticent.policy.section import unknown

    if kind not in KINDS:
        raise PolicyError(f"--for: {unknown(kind, KINDS)}")
    if is_hl7(data) and kind != "stream":
        raise PolicyError("HL7 messages are released as a stream.", hint="Add --for stream.")
    guesses = guess(read_input_head(data, SAMPLE))
    person = guess_person(guesses)
    chosen = method_of(kind, method)
    if chosen == VEIL:
        plan = veil_kind(kind, data, output, guesses, person, section_for(data))
    else:
        plan = kind_for(kind, chosen, data, output, guesses, person)
    files = plan.files | {output: render(guesses, person, section_for(data), plan)}
    for path in files:
        if path.exists():
            raise ConnectorError(f"{path} exists.", hint="Give another file to --output.")
    for path, text in files.items():
        write_text(path, text)
    Policy.load(output)
    width = max(len(g.column) for g in guesses)
    for g in guesses:
        say(f"  {g.column:<{width}}  {g.role:<10}  {g.why}")
    say(f"Written to {' and '.join(map(str, reversed(files)))}. Read and correct, then:")
    for command in (shlex.join(["reticent", "policy", "check", str(output)]), *plan.then):
        say(f"  {command}")
    if json:
        emit(
            {
                "policy": str(output),
                "person": person,
                "columns": {g.column: {"role": g.role, "why": g.why} for g in guesses},
                "files": [str(path) for path in files],
            }
        )


def render(guesses: list[Guess], person: str | None, section: str | None = None, plan: Kind | None = None) -> str:
    """The policy as text, each guess with its reason."""
    import json

    lines = [
        "# Guessed from the data: read every line and correct it. When in doubt a column is a quasi-identifier.",
        "version: 1",
    ]
    if person:
        records = plan.records if plan is not None else None
        name = f"{{column: {json.dumps(person)}, records: {records}}}" if records else json.dumps(person)
        lines.append(f"person: {name}   # the same person across records; never released")
    if section:
        lines.append(f"{section}   # how the data becomes a table")
    lines.append("columns:")
    for g in guesses:
        more = "" if g.hierarchy is None else f", hierarchy: {json.dumps(g.hierarchy)}"
        if plan is not None and g.role == "quasi" and plan.levels.get(g.column):
            more += f", level: {plan.levels[g.column]}"
        if g.role == "sensitive" and plan is not None and plan.updates:
            more += ", updates: any"
        what = f"{{role: {g.role}{more}}}" if more else g.role
        lines.append(f"  {json.dumps(g.column)}: {what}   # {g.why}")
    if plan is not None and plan.lines:
        lines += plan.lines
    else:
        wide = any(g.role == "sensitive" and g.distinct >= 3 for g in guesses)
        lines.append(f"privacy: {{k: 5, {'l: 3, ' if wide else ''}suppression: 0.02}}")
    return "\n".join(lines) + "\n"
