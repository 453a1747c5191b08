"""`reticent audit`: attack releases and write a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from reticent.cli import options
from reticent.cli.output import emit, say, steps
from reticent.errors import PolicyError


@click.command()
@options.policy_file
@click.option("--output", "-o", type=options.PATH, required=True, help="HTML file for the report.")
@click.argument(
    "releases",
    nargs=-1,
    type=options.PATH_OR_URL,
    metavar="DIR|FILE...",
    help="Releases in order, or a table from any source.",
)
@click.option(
    "--original", type=options.PATH_OR_URL, help="The private input, to measure utility and count correct guesses."
)
@click.option("--population", help="A table of the population, or the number of people in it.")
@click.option("--external", type=options.PATH_OR_URL, help="A table that an attacker might have or learn from.")
@click.option("--ledger", help="Store of the publication; its ledger has each person's group.")
@click.option("--compare", type=options.PATH, multiple=True, help="Policy to try on --original. Repeatable.")
@click.option(
    "--threshold",
    type=click.FloatRange(min=0.0001, max=1.0),
    default=0.09,
    help="Risk above which a record counts as exposed.",
)
@click.option(
    "--target", show_default="the sensitive column", help="The quasi-identifier that the classifier predicts."
)
@options.seed
@options.json
def audit(
    policy: Path,
    output: Path,
    releases: tuple[str, ...],
    original: str | None,
    population: str | None,
    external: str | None,
    ledger: str | None,
    compare: tuple[Path, ...],
    threshold: float,
    target: str | None,
    seed: int | None,
    json: bool,
) -> None:
    """Verify, measure and attack releases, and write the report.

    Writes an HTML report and a JSON file with the figures. The exit code is 4 if a claim is refuted.
    """
    from reticent.api import ledger_of, sources_of
    from reticent.connectors.files import read_table
    from reticent.connectors.inputs import read_input
    from reticent.connectors.linked import read_tables
    from reticent.policy import Policy
    from reticent.report import AuditInputs, write_report
    from reticent.report import audit as run_audit
    from reticent.report import compare as try_policies
    from reticent.report.sections import command_text

    if not releases and not compare:
        raise PolicyError("There is nothing to audit.", hint="Give release folders, or --compare with --original.")
    if compare and original is None:
        raise PolicyError("--compare needs the table to try the policies on.", hint="Add --original DATA.")
    rules = Policy.load(policy)
    candidates = [(path.name, Policy.load(path)) for path in compare]
    with steps() as step:
        step("Reading the tables")
        linked = rules.tables is not None and original is not None
        table = read_input(original, rules) if original is not None and not linked else None
        material = AuditInputs(
            original=table,
            tables=read_tables(str(original), rules)[0] if linked else None,
            population=_population(population),
            external=read_table(external) if external is not None else None,
            ledger=None if ledger is None else ledger_of(ledger),
            threshold=threshold,
            target=target,
            seed=seed,
        )
        outcome = run_audit(sources_of(releases, rules), rules, material, progress=step) if releases else None
        tried = try_policies(table, candidates, seed=seed, progress=step) if table is not None and candidates else []
        step("Writing the report")
        page, figures_file = write_report(output, outcome, tried, command_text(sys.argv[1:]))
    _say_results(outcome, tried)
    say(f"Report: {page}, figures: {figures_file}.")
    if json:
        figures = outcome.to_dict() if outcome is not None else {}
        emit(figures | ({"compare": [one.to_dict() for one in tried]} if tried else {}))
    if outcome is not None and outcome.refuted:
        raise click.exceptions.Exit(4)


def _say_results(outcome: Any, tried: list[Any]) -> None:
    for attack in outcome.outcomes if outcome is not None else ():
        low, high = attack.interval
        claim = "no claim" if attack.claim is None else f"bound {attack.claim:.1%}"
        word = "REFUTES" if attack.refuted else "tried"
        say(f"  {word:8} {attack.attack:14} {attack.accuracy:6.1%} correct [{low:.1%}, {high:.1%}], {claim}")
    for one in tried:
        word = "frontier" if one.frontier else "cannot be met" if not one.met else "dominated"
        guess = "" if one.guess is None else f"{one.guess:.1%} correct guesses, query error {one.query_error or 0:.1%}"
        say(f"  {one.name}: {word} {guess}")
    if outcome is not None:
        say("REFUTED: at least one claim does not hold." if outcome.refuted else "No claim was refuted.")


def _population(word: str | None) -> Any:
    from reticent.connectors.files import read_table

    if word is None:
        return None
    return int(word) if word.replace("_", "").isdigit() else read_table(word)
