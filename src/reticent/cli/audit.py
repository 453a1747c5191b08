"""`reticent audit`: attack releases and write a report that can be signed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli.options import Json, PolicyFile, Seed


def audit(
    policy: PolicyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The report, a .html file.", show_default=False)],
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="DIR|FILE...", help="Releases, in order; or anybody's table.")
    ] = None,
    original: Annotated[
        str | None, typer.Option(help="The private input: utility, and right guesses counted.", show_default=False)
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="A table of the population, or its number of people.", show_default=False)
    ] = None,
    external: Annotated[
        str | None, typer.Option(help="A table that an attacker might hold or learn from.", show_default=False)
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="The store whose ledger tells who stood where.", show_default=False)
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="A candidate policy to try on --original; repeat it.", show_default=False),
    ] = None,
    threshold: Annotated[float, typer.Option(min=0.0001, max=1.0, help="Risk above which a record is exposed.")] = 0.09,
    target: Annotated[
        str | None,
        typer.Option(help="The quasi-identifier that the classifier learns.", show_default="the sensitive column"),
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Verify, measure and attack; write report.html and audit.json. Exit 4 when a claim is refuted."""
    from reticent.api import ledger_of, sources_of
    from reticent.cli.output import emit, say
    from reticent.connectors.files import read_table
    from reticent.connectors.inputs import read_input
    from reticent.connectors.linked import read_tables
    from reticent.errors import PolicyError
    from reticent.policy import Policy
    from reticent.report import Material, write_report
    from reticent.report import audit as judge
    from reticent.report import compare as try_policies
    from reticent.report.sections import shown_command

    if not releases and not compare:
        raise PolicyError("There is nothing to audit.", hint="Give release folders, or --compare with --original.")
    if compare and original is None:
        raise PolicyError("--compare needs the table to try the policies on.", hint="Add --original DATA.")
    rules = Policy.load(policy)
    candidates = [(path.name, Policy.load(path)) for path in compare or ()]
    with _progress() as step:
        step("Reading the tables")
        linked = rules.tables is not None and original is not None
        table = read_input(original, rules) if original is not None and not linked else None
        material = Material(
            original=table,
            tables=read_tables(str(original), rules)[0] if linked else None,
            population=_population(population, read_table),
            external=read_table(external) if external is not None else None,
            ledger=None if ledger is None else ledger_of(ledger),
            threshold=threshold,
            target=target,
            seed=seed,
        )
        found = judge(sources_of(releases, rules), rules, material, progress=step) if releases else None
        tried = try_policies(table, candidates, seed=seed, progress=step) if table is not None and candidates else []
        step("Writing the report")
        page, twin = write_report(output, found, tried, shown_command(sys.argv[1:]))
    _say_results(found, tried, say)
    say(f"Report: {page}, figures: {twin}.")
    if json:
        figures = found.to_dict() if found is not None else {}
        emit(figures | ({"compare": [one.to_dict() for one in tried]} if tried else {}))
    if found is not None and found.refuted:
        raise typer.Exit(4)


def _say_results(found: Any, tried: list[Any], say: Callable[[str], None]) -> None:
    for outcome in found.outcomes if found is not None else ():
        low, high = outcome.interval
        claim = "no claim" if outcome.claim is None else f"conceded {outcome.claim:.1%}"
        word = "REFUTES" if outcome.refuted else "tried"
        say(f"  {word:8} {outcome.attack:14} {outcome.accuracy:6.1%} right [{low:.1%}, {high:.1%}], {claim}")
    for one in tried:
        word = "frontier" if one.frontier else "cannot be met" if not one.met else "beaten"
        guess = "" if one.guess is None else f"{one.guess:.1%} right guesses, query error {one.query_error or 0:.1%}"
        say(f"  {one.name}: {word} {guess}")
    if found is not None:
        say("REFUTED: at least one claim does not hold." if found.refuted else "No claim was refuted.")


def _population(given: str | None, read: Callable[[str], Any]) -> Any:
    if given is None:
        return None
    return int(given) if given.replace("_", "").isdigit() else read(given)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Names each step while it runs: a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        current: list[Any] = []

        def step(name: str) -> None:
            if current:
                bar.update(current[-1], completed=1)
            current.append(bar.add_task(name, total=1))

        yield step
        if current:
            bar.update(current[-1], completed=1)
