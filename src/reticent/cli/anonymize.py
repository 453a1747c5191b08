"""`reticent anonymize`: one table, once."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from reticent.cli.options import DespiteLedger, Format, Json, OutputFolder, PolicyFile, Seed


def anonymize(
    data: Annotated[
        str,
        typer.Argument(help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; a database URL.", show_default=False),
    ],
    policy: PolicyFile,
    output: OutputFolder,
    method: Annotated[
        str | None, typer.Option(help="Instead of the policy's table.method.", show_default=False)
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="Remembers who was published, and keeps the key of the veil: a file or a URL.",
            show_default=False,
        ),
    ] = None,
    despite_ledger: DespiteLedger = False,
    form: Format = "csv",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release one table, once.

    Meets the policy, verifies, then writes; or writes nothing and says why.
    """
    from reticent.api import anonymize as release_table
    from reticent.cli.load_inputs import load_inputs
    from reticent.cli.output import describe, emit, say, summary, working

    start = time.perf_counter()
    table, rules = load_inputs(data, policy, output)
    with working("Searching for the release"):
        release = release_table(table, rules, method=method, store=store, seed=seed, despite_ledger=despite_ledger)
    del table
    with working("Writing"):
        release.to_dir(output, format=form)
    seconds = time.perf_counter() - start
    describe(release, seconds)
    for word in release.guarantee.not_covered:
        if word.startswith("PERSONS"):
            say(f"WARNING: {word}.")
    say(f"Verified and written to {output}.")
    if json:
        emit(summary(release, seconds))
