"""`reticent republish`: publish the next release of a series."""

from __future__ import annotations

import time
from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.anonymize import load_inputs
from reticent.cli.output import describe, emit, say, show_progress, summary


@click.command()
@click.argument("data", type=options.PATH_OR_URL, help="All current records.")
@options.policy_file
@click.option("--store", type=options.PATH_OR_URL, required=True, help="Store of the series: a file or a URL.")
@options.output_folder
@options.method
@options.allow_republication
@options.format
@options.seed
@options.json
def republish(
    data: str,
    policy: Path,
    store: str,
    output: Path,
    method: str | None,
    allow_republication: bool,
    form: str,
    seed: int | None,
    json: bool,
) -> None:
    """Publish the next release of a series: the same people, with current values.

    Reticent checks the release together with all earlier ones, and writes nothing if the policy cannot be met.
    """
    from reticent.stateful import Series

    start = time.perf_counter()
    table, rules = load_inputs(data, policy, output, "series", method)
    with show_progress("Making the release"):
        series = Series(store, rules, seed=seed, allow_republication=allow_republication)
        release = series.publish(table, output, format=form)
    seconds = time.perf_counter() - start
    describe(release, seconds)
    for name in ("changes", "withheld", "risk"):
        figures = release.explain.get(name) or {}
        if figures:
            say(f"  {name}: " + ", ".join(f"{key} {value:,}" for key, value in figures.items()))
    say(f"Release {series.status()['releases']} of the series, verified and written to {output}.")
    if json:
        emit(summary(release, seconds))
