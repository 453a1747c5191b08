"""`reticent evolve`: publish an evolving table, version by version."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli import options
from reticent.cli.output import describe, emit, figures, say, show_progress, summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.engine.evolving.change import Change
    from reticent.stateful import EvolvingTable

app = options.OrderedGroup(help="Publish a table that changes, version by version.")

again_option = click.option("--again", is_flag=True, help="Apply the file even if it is identical to the last change.")


@app.command("init")
@options.store
@options.policy_file
@options.method
@options.seed
@options.json
def init(store: str, policy: Path, method: str | None, seed: int | None, json: bool) -> None:
    """Create a store with an empty table. Its policy cannot be changed later."""
    from reticent.policy import Policy
    from reticent.stateful import EvolvingTable

    rules = EvolvingTable.create(store, Policy.load(policy).with_method("evolving", method), seed=seed).policy
    say(f"Created an empty table with method {rules.evolving.method}, l = {rules.l_of('evolving')}.")
    if json:
        emit({"method": rules.evolving.method, "l": rules.l_of("evolving"), "policy_hash": rules.hash})


@app.command("insert")
@options.store
@options.data
@again_option
@options.json
def insert(store: str, data: str, again: bool, json: bool) -> None:
    """Add the records of a file in one transaction."""
    _change(store, lambda table: table.insert(data, again=again), json=json)


@app.command("update")
@options.store
@options.data
@options.json
def update(store: str, data: str, json: bool) -> None:
    """Replace the records that a file names in one transaction."""
    _change(store, lambda table: table.update(data), json=json)


@app.command("apply")
@options.store
@options.data
@again_option
@options.json
def apply(store: str, data: str, again: bool, json: bool) -> None:
    """Apply a change feed in one transaction. Its column `op` says insert, update or delete."""
    _change(store, lambda table: table.apply(data, again=again), json=json)


@app.command("delete")
@options.store
@click.argument("data", type=options.PATH_OR_URL, help="A file with a column of person ids or record ids.")
@click.option("--by", help="Identifier column of the ids in the file.")
@options.json
def delete(store: str, data: str, by: str | None, json: bool) -> None:
    """Delete the persons or records that a file names in one transaction."""
    _change(store, lambda table: table.delete(data, by=by), json=json)


@app.command("publish")
@options.store
@options.output_folder
@click.option("--again", is_flag=True, help="Try another publication with a method made for one; the verifier decides.")
@options.allow_republication
@options.format
@options.json
def publish(store: str, output: Path, again: bool, allow_republication: bool, form: str, json: bool) -> None:
    """Verify the table as it is now, record it in the ledger and write the release."""
    from reticent.release.folder import refuse_overwrite
    from reticent.stateful import EvolvingTable

    start = time.perf_counter()
    refuse_overwrite(Path(output))
    with show_progress("Publishing"), EvolvingTable(store) as table:
        recovered = table.status()["undelivered"] > 0
        release = table.publish(output, again=again, format=form, allow_republication=allow_republication)
        status = table.status()
    seconds = time.perf_counter() - start
    if recovered:
        say("An earlier publication was stored but not delivered. It was delivered now, and no new one was made.")
    describe(release, seconds)
    if not status["safe_again"]:
        say("  This method is made for one publication; the verifier decides on each further one.")
    say(f"Publication {status['publications']}, verified and written to {output}.")
    if json:
        emit(summary(release, seconds) | {"publication": status["publications"], "recovered": recovered})


@app.command("status")
@options.store
@options.json
def status(store: str, json: bool) -> None:
    """Show the state of the table in counts."""
    from reticent.stateful import EvolvingTable

    figures = EvolvingTable(store).status()
    for name, value in figures.items():
        say(f"  {name.replace('_', ' ')}: {value:,}" if type(value) is int else f"  {name.replace('_', ' ')}: {value}")
    if json:
        emit(figures)


def _change(store: str, work: Callable[[EvolvingTable], Change], *, json: bool) -> None:
    from reticent.release import RecordCounts
    from reticent.stateful import EvolvingTable

    start = time.perf_counter()
    with show_progress("Applying the change"):
        table = EvolvingTable(store)
        change = work(table)
        records = table.status()["records"]
    seconds = time.perf_counter() - start
    done: dict[str, Any] = change.to_dict()
    say(f"{done['inserted']:,} inserted, {done['updated']:,} updated, {done['deleted']:,} deleted in {seconds:.1f} s.")
    if done["touched"] or done["dissolved"]:  # methods with classes
        say(
            f"  classes touched: {done['touched']:,}, dissolved: {done['dissolved']:,}; "
            f"records relocated: {done['relocated']:,}."
        )
    say(f"  {records:,} records in total, {done['withheld']:,} of them withheld.")
    if json:
        counts = RecordCounts(done["inserted"] + done["updated"] + done["deleted"], withheld=done["withheld"])
        emit(figures(counts, seconds) | done | {"records": records})
