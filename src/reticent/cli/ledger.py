"""`reticent ledger`: list the publications of a store, in counts."""

from __future__ import annotations

import click

from reticent.cli import options
from reticent.cli.output import emit, say


@click.command()
@options.store
@options.json
def ledger(store: str, json: bool) -> None:
    """List the publications of a store and how many people each one includes."""
    from reticent.publication.population import summarize_publications
    from reticent.store import Store

    with Store.open(store, create=False) as opened:
        publications = summarize_publications(opened)
    for name, about in publications.items():
        persons = "everybody" if about["everybody"] else f"{about['persons']:,} people"
        say(
            f"  {name}: {persons} by {about['method']}, {about['first']} to {about['last']}; "
            f"{about['elsewhere']:,} of them are also in other publications"
        )
    if not publications:
        say("This store has no publications.")
    if json:
        emit(publications)
