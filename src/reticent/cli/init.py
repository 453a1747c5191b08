"""`reticent init`: look at the data, guess roles, build hierarchies, explain each guess."""

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

    from reticent.cli.init import apply_options, ask_roles
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
            raise ConnectorError(f"{path} exists.", hint="Give another file to --output.")
    for path, text in files.items():
        write_text(path, text)
    Policy.load(output)
    _explain(guesses, missing, plan)
    say(f"Written to {', '.join(map(str, reversed(files)))}. Read and correct, then:")
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


_MAX_QUESTIONS = 8
"""Nobody answers more of them with care."""


def apply_options(guesses: list[Guess], person: str | None, sensitive: str | None) -> list[Guess]:
    """The guesses with what options say: the column of the person stays inside, the one to protect comes before all other illnesses."""
    names = tuple(g.column for g in guesses)
    for option, name in (("--person", person), ("--sensitive", sensitive)):
        if name is not None and name not in names:
            raise PolicyError(f"{option}: the data has no such column: {unknown_word_message(name, names)}")
    if person is not None and person == sensitive:
        raise PolicyError(f"--person and --sensitive both name '{person}'.", hint="Name two columns.")
    roles = {person: "identifier", sensitive: "sensitive"}
    guesses = [replace(g, role=roles[g.column], why="as you said") if g.column in roles else g for g in guesses]
    if sensitive is None:
        return guesses
    reason = "kept inside, since you named another column to protect"
    return [
        replace(g, role="identifier", why=f"{g.why}; {reason}")
        if g.role == "sensitive" and g.column != sensitive
        else g
        for g in guesses
    ]


def ask_roles(guesses: list[Guess]) -> list[Guess]:
    """The guesses as a person has corrected them."""
    if is_quiet() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return guesses
    doubtful = [g.column for g in guesses if g.unsure][:_MAX_QUESTIONS]
    return [_ask_role(g) if g.column in doubtful else g for g in guesses]


def _ask_role(guess: Guess) -> Guess:
    """One question; the first letter of a role is enough, and Enter keeps the guess."""
    while True:
        say(f"{guess.column}: {guess.why}. Role ({', '.join(ROLES)})? Enter: {guess.role}")
        answer = sys.stdin.readline().strip().lower()
        role = next((role for role in ROLES if role.startswith(answer)), None) if answer else guess.role
        if role is not None:
            return guess if role == guess.role else replace(guess, role=role, why="as you said")
