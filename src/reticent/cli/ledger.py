"""`reticent ledger`: who has seen what, in counts."""

from __future__ import annotations

import click

from reticent.cli import options
from reticent.cli.output import emit, say


@click.command()
@options.store
@options.json
def ledger(store: str, json: bool) -> None:
    """Tell what the publications of a store have shown of how many persons."""
    from reticent.publication.population import summarize_publications
    from reticent.store import Store

    with Store.open(store, create=False) as opened:
        seen = summarize_publications(opened)
    for name, about in seen.items():
        persons = "everybody" if about["everybody"] else f"{about['persons']:,} persons"
        say(
            f"  {name}: {persons} by {about['method']}, {about['first']} to {about['last']}; "
            f"{about['elsewhere']:,} of them stand in other publications too"
        )
    if not seen:
        say("Nobody has been published from this store.")
    if json:
        emit(seen)
