"""`reticent evolve`: a table that gains, loses and corrects rows, on a durable store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.options import Format, Json, OutputFolder, PolicyFile, Seed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from reticent.engine.evolving.change import Change
    from reticent.engine.evolving.durable import EvolvingTable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="A table that changes, published version by version.",
)

Place = Annotated[str, typer.Argument(metavar="STORE", help="A file, or a postgresql:// URL.", show_default=False)]
Data = Annotated[
    str, typer.Argument(help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; a database URL.", show_default=False)
]
Again = Annotated[
    bool, typer.Option("--again", help="Take in the file that was the last change once more, not by mistake.")
]


@app.command("init")
def init(store: Place, policy: PolicyFile, seed: Seed = None, json: Json = False) -> None:
    """Make the store of an empty table under a policy, which it keeps for life."""
    from reticent.cli.output import emit, say
    from reticent.engine.evolving.durable import EvolvingTable
    from reticent.policy import Policy

    rules = Policy.load(policy)
    EvolvingTable.create(store, rules, seed=seed)
    say(f"An empty table under method {rules.evolving.method}, l = {rules.l_of('evolving')}.")
    if json:
        emit({"method": rules.evolving.method, "l": rules.l_of("evolving"), "policy_hash": rules.hash})


@app.command("insert")
def insert(store: Place, data: Data, again: Again = False, json: Json = False) -> None:
    """Add the records of a file, in one transaction."""
    _change(store, data, lambda table, batch: table.insert(batch, again=again), json=json)


@app.command("update")
def update(store: Place, data: Data, json: Json = False) -> None:
    """Replace the records that a file names, in one transaction."""
    _change(store, data, lambda table, batch: table.update(batch), json=json)


@app.command("apply")
def apply(store: Place, data: Data, again: Again = False, json: Json = False) -> None:
    """Apply a change feed: a file whose column `op` says insert, update or delete, in one transaction."""
    _change(store, data, lambda table, batch: table.apply(batch, again=again), json=json)


@app.command("delete")
def delete(
    store: Place,
    data: Annotated[str, typer.Argument(help="A file with a column of person ids or record ids.", show_default=False)],
    by: Annotated[str | None, typer.Option(help="The identifier column to delete by.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Remove the records of the persons (or the records) that a file names, in one transaction."""
    _change(store, data, lambda table, batch: _delete(table, batch, by), json=json)


@app.command("publish")
def publish(
    store: Place,
    output: OutputFolder,
    again: Annotated[
        bool, typer.Option("--again", help="Publish once more with a method that is safe only once.")
    ] = False,
    form: Format = "csv",
    json: Json = False,
) -> None:
    """Publish the table as it is now: verify, remember it in the ledger, then write it."""
    from reticent.cli.output import describe, emit, say, summary, working
    from reticent.engine.evolving.durable import EvolvingTable
    from reticent.release.folder import refuse_taken

    start = time.perf_counter()
    refuse_taken(Path(output))
    with working("Publishing"), EvolvingTable.open(store) as table:
        made = table.publish(output, again=again, form=form)
        publications, safe = table.engine.publications, table.engine.safe_again
    seconds = time.perf_counter() - start
    if made.recovered:
        say("A publication had been stored but not delivered; it was delivered now, and no new one was made.")
    describe(made.release, seconds)
    if not safe:
        warning = (
            "WARNING: whoever subtracts this publication from an earlier one learns values of single persons."
            if publications > 1
            else ""
        )
        say(f"  This method is safe for one publication only. {warning}".rstrip())
    say(f"Publication {publications}, verified and written to {output}.")
    if json:
        emit(summary(made.release, seconds) | {"publication": publications, "recovered": made.recovered})


@app.command("status")
def status(store: Place, json: Json = False) -> None:
    """Tell how the table stands."""
    from reticent.cli.output import emit, say
    from reticent.engine.evolving.durable import EvolvingTable

    with EvolvingTable.open(store) as table:
        found = table.status()
    for name, value in found.items():
        say(f"  {name.replace('_', ' ')}: {value:,}" if type(value) is int else f"  {name.replace('_', ' ')}: {value}")
    if json:
        emit(found)


def _delete(table: EvolvingTable, batch: pa.Table, by: str | None) -> Change:
    from reticent.errors import DataError

    known = [name for name in (by, table.engine.name, table.policy.person) if name is not None]
    column = next((name for name in known if name in batch.column_names), None)
    if column is None and by is None and batch.num_columns == 1:
        return table.delete(batch.column(0), by=table.policy.person)
    if column is None:
        raise DataError(f"The file has no column '{known[0]}'.", hint="Give a file with the ids of persons or records.")
    return table.delete(batch.column(column), by=column)


def _change(store: str, data: str, work: Callable[[EvolvingTable, pa.Table], Change], *, json: bool) -> None:
    from reticent.cli.output import emit, say, working
    from reticent.connectors.inputs import read_input
    from reticent.engine.evolving.durable import EvolvingTable

    start = time.perf_counter()
    with working("Reading"):
        batch = read_input(data, EvolvingTable.policy_of(store))
    with working("Changing"), EvolvingTable.open(store, touching=batch) as table:
        change = work(table, batch)
        status = table.status()
    seconds = time.perf_counter() - start
    done: dict[str, Any] = change.to_dict()
    say(f"{done['inserted']:,} inserted, {done['updated']:,} updated, {done['deleted']:,} deleted in {seconds:.1f} s.")
    say(
        f"  classes touched: {done['touched']:,}, dissolved: {done['dissolved']:,}; "
        f"records relocated: {done['relocated']:,}; held back: {done['held']:,} of {status['records']:,}."
    )
    if status["records"] and done["held"] == status["records"]:
        say("  All of them wait for the first publication, which settles the design.")
    if json:
        counts = {"rows_in": batch.num_rows, "rows_out": 0, "held": done["held"], "suppressed": 0}
        emit(
            counts
            | {"seconds": round(seconds, 4), "guarantee": {}, "metrics": {}, **done, "records": status["records"]}
        )
