"""`reticent init`: propose a policy for a data set, and explain each proposal."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import emit, is_quiet, say
from reticent.errors import ConnectorError, PolicyError
from reticent.policy.spec import ROLES, unknown_word_message

if TYPE_CHECKING:
    from reticent.cli.policy_plan import PolicyPlan
    from reticent.policy.guess import Guess


@click.command()
@click.argument(
    "data",
    type=options.PATH_OR_URL,
    help="CSV, Parquet, Arrow IPC or NDJSON file; FHIR export; HL7 v2 messages; database URL.",
)
@click.option("--output", "-o", type=options.PATH, default=Path("policy.yaml"), help="Policy file to write.")
@click.option("kind", "--for", default="table", help="Kind of release: table, evolving, series or stream.")
@click.option(
    "--method", help="Method of the release; default: the usual one of its kind. With veil, also makes a prior."
)
@click.option("--person", help="Column that identifies the person, if init does not recognize it.")
@click.option("--sensitive", help="Column to protect, if init does not recognize it.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask questions.")
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
    """Propose a policy for your data, for you to review and correct.

    Guesses roles, hierarchies and markers of missing values, and explains each guess. On a terminal it asks about uncertain columns.
    For the veil it also proposes the published levels and makes a prior from the data, with noise.
    """
    import shlex

    from reticent.cli.policy_plan import plan_for, refuse_kind, render
    from reticent.cli.veil_policy import VEIL, method_of, veil_plan
    from reticent.connectors.files import write_text
    from reticent.connectors.inputs import policy_section_of, read_input_head
    from reticent.policy import Policy
    from reticent.policy.guess import (
        SAMPLE,
        guess,
        guess_missing_markers,
        guess_person,
        keep_one_sensitive,
        without_disclosive,
    )

    refuse_kind(kind, data)
    chosen = method_of(kind, method)
    head = read_input_head(data, SAMPLE)
    missing = guess_missing_markers(head)
    guesses = apply_options(guess(head), person, sensitive)
    guesses = guesses if yes else ask_roles(guesses)
    if kind != "table" or chosen in (VEIL, "anatomy"):
        guesses = keep_one_sensitive(guesses)
    guesses = without_disclosive(head, guesses)
    person = person or guess_person(guesses)
    if chosen == VEIL:
        plan = veil_plan(kind, data, output, guesses, person, policy_section_of(data), missing)
    else:
        plan = plan_for(kind, chosen, data, output, guesses, person, head, missing)
    files = plan.files | {output: render(guesses, person, policy_section_of(data), plan, missing)}
    for path in files:
        if path.exists():
            raise ConnectorError(f"{path} already exists.", hint="Give another file to --output.")
    for path, text in files.items():
        write_text(path, text)
    Policy.load(output)
    _explain(guesses, missing, plan)
    say(f"Written to {', '.join(map(str, reversed(files)))}. Review and correct the policy, then run:")
    for command in (shlex.join(["reticent", "policy", "check", str(output)]), *plan.next_commands):
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


def _explain(guesses: list[Guess], missing: tuple[str, ...], plan: PolicyPlan) -> None:
    """Print one line per guess and a summary."""
    width = max(len(g.column) for g in guesses)
    for g in guesses:
        say(f"  {g.column:<{width}}  {g.role:<10}  {g.why}")
    if missing:
        say(f"  Read as missing: {' '.join(missing)}")
    for note in plan.notes:
        say(f"  {note}")
    names = {role: [g.column for g in guesses if g.role == role] for role in ("identifier", "quasi", "plain")}
    say(f"Columns not released: {len(names['identifier'])}; generalized as needed: {len(names['quasi'])}.")
    if names["plain"]:
        say(
            f"Released unchanged: {len(names['plain'])}. An attacker who knows these values of a person can find the record, so change "
            "the role to quasi for each column that others may know."
        )


_MAX_QUESTIONS = 8
"""Users do not answer more questions carefully."""


def apply_options(guesses: list[Guess], person: str | None, sensitive: str | None) -> list[Guess]:
    """Apply --person and --sensitive to the guesses. Other columns guessed as sensitive are then not released."""
    names = tuple(g.column for g in guesses)
    for option, name in (("--person", person), ("--sensitive", sensitive)):
        if name is not None and name not in names:
            raise PolicyError(f"{option}: the data has no such column: {unknown_word_message(name, names)}")
    if person is not None and person == sensitive:
        raise PolicyError(f"--person and --sensitive both name '{person}'.", hint="Name two different columns.")
    roles = {person: "identifier", sensitive: "sensitive"}
    guesses = [replace(g, role=roles[g.column], why="set by you") if g.column in roles else g for g in guesses]
    if sensitive is None:
        return guesses
    reason = "not released, because you named another column to protect"
    return [
        replace(g, role="identifier", why=f"{g.why}; {reason}")
        if g.role == "sensitive" and g.column != sensitive
        else g
        for g in guesses
    ]


def ask_roles(guesses: list[Guess]) -> list[Guess]:
    """Ask the user about uncertain guesses on a terminal. Return the corrected guesses."""
    if is_quiet() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return guesses
    doubtful = [g.column for g in guesses if g.unsure][:_MAX_QUESTIONS]
    return [_ask_role(g) if g.column in doubtful else g for g in guesses]


def _ask_role(guess: Guess) -> Guess:
    """Ask for the role of one column. The first letter is enough, and Enter keeps the guess."""
    while True:
        say(f"{guess.column}: {guess.why}. Role ({', '.join(ROLES)})? Enter: {guess.role}")
        answer = sys.stdin.readline().strip().lower()
        role = next((role for role in ROLES if role.startswith(answer)), None) if answer else guess.role
        if role is not None:
            return guess if role == guess.role else replace(guess, role=role, why="set by you")
