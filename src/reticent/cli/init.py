"""`reticent init`: look at the data, guess roles, build hierarchies, explain each guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import ConnectorError

if TYPE_CHECKING:
    from reticent.cli.kinds import Kind
    from reticent.policy.guess import Guess


@click.command()
@click.argument(
    "data",
    type=options.PLACE,
    help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; HL7 v2 messages; a database URL.",
)
@click.option("--output", "-o", type=options.PATH, default=Path("policy.yaml"), help="The policy file to write.")
@click.option("kind", "--for", default="table", help="The kind of release: table, evolving, series or stream.")
@click.option(
    "--method", help="veil: proposes published levels and makes a prior, too; without it the usual one of the kind."
)
@click.option("--person", help="The column that tells persons apart, where its name does not say so.")
@click.option("--sensitive", help="The column to protect, where its name and values do not say so.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing, also on a terminal.")
@options.json
def init(
    data: str,
    output: Path,
    kind: str,
    method: str | None,
    person: str | None,
    sensitive: str | None,
    yes: bool,
    json: bool,
) -> None:
    """Look at the data, guess roles, and write a policy to correct.

    Hierarchies and markers of missing cells are guessed too, and each guess is explained; on a terminal it asks where it is unsure.
    For the veil it proposes published levels and counts a prior on the data, with noise.
    """
    import shlex

    from reticent.cli.ask_roles import ask_roles, told_roles
    from reticent.cli.kinds import kind_for, refuse_kind, render
    from reticent.cli.veil_policy import VEIL, method_of, veil_kind
    from reticent.connectors.files import write_text
    from reticent.connectors.inputs import read_input_head, section_for
    from reticent.policy import Policy
    from reticent.policy.guess import SAMPLE, guess, guess_missing, guess_person, one_sensitive, without_tellers

    refuse_kind(kind, data)
    chosen = method_of(kind, method)
    head = read_input_head(data, SAMPLE)
    missing = guess_missing(head)
    guesses = told_roles(guess(head), person, sensitive)
    guesses = guesses if yes else ask_roles(guesses)
    if kind != "table" or chosen in (VEIL, "anatomy"):
        guesses = one_sensitive(guesses)
    guesses = without_tellers(head, guesses)
    person = person or guess_person(guesses)
    if chosen == VEIL:
        plan = veil_kind(kind, data, output, guesses, person, section_for(data), missing)
    else:
        plan = kind_for(kind, chosen, data, output, guesses, person, head, missing)
    files = plan.files | {output: render(guesses, person, section_for(data), plan, missing)}
    for path in files:
        if path.exists():
            raise ConnectorError(f"{path} exists.", hint="Give another file to --output.")
    for path, text in files.items():
        write_text(path, text)
    Policy.load(output)
    _explain(guesses, missing, plan)
    say(f"Written to {', '.join(map(str, reversed(files)))}. Read and correct, then:")
    for command in (shlex.join(["reticent", "policy", "check", str(output)]), *plan.then):
        say(f"  {command}")
    if json:
        emit(
            {
                "policy": str(output),
                "person": person,
                "missing": list(missing),
                "columns": {g.column: {"role": g.role, "why": g.why} for g in guesses},
                "files": [str(path) for path in files],
            }
        )


def _explain(guesses: list[Guess], missing: tuple[str, ...], plan: Kind) -> None:
    """One line per guess, then what they come to."""
    width = max(len(g.column) for g in guesses)
    for g in guesses:
        say(f"  {g.column:<{width}}  {g.role:<10}  {g.why}")
    if missing:
        say(f"  Read as missing: {' '.join(missing)}")
    for note in plan.notes:
        say(f"  {note}")
    names = {role: [g.column for g in guesses if g.role == role] for role in ("identifier", "quasi", "plain")}
    say(f"Columns that stay inside: {len(names['identifier'])}; made coarser as far as needed: {len(names['quasi'])}.")
    if names["plain"]:
        say(
            f"Released as they are: {len(names['plain'])}; whoever knows those of a person can find the record, so write quasi for "
            "each that your readers may know."
        )
