"""An evolving table: insert, correct and delete records, and publish the current table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from nicegui import events, ui

from reticent.engine.evolving.change import OP_COLUMN
from reticent.publication.evolving import Evolving
from reticent.service.pages.confirmation import final_checkbox, publish_button, show_claims
from reticent.service.pages.data import drop_area
from reticent.service.pages.layout import (
    PageContext,
    card,
    figure,
    format_time,
    hint_text,
    run_or_notify,
    status_text,
    studio_page,
)
from reticent.service.pages.safe_elements import data_table
from reticent.service.routes.common import in_thread
from reticent.service.routes.evolving import change_table
from reticent.service.uploads import read_upload

_MAX_LINKS = 3
_OPS = {
    "insert": "insert: new records with all columns",
    "update": "correct: records that replace those of the same persons",
    "delete": "delete: ids of persons",
    "": "the column op of the file",
}


@studio_page("/evolving", "Sources")
async def evolving_page(context: PageContext, name: str = "") -> None:
    """Draw the page."""
    table = await run_or_notify(in_thread(lambda: context.hub.evolving_table(name)))
    if table is None:
        status_text("There is no such evolving table. Create one on the page Sources.", bad=True)
        return
    state = await in_thread(table.status)
    figures = _status(name, table)
    _fill(figures, state)
    _change(context, table, figures)
    with card("Publish the current table"):
        publish_button(lambda: in_thread(lambda: context.hub.jobs.begin("evolving", name, {})), final_checkbox())
        hint_text(
            "The verifier recomputes every claim with all earlier releases, and the publishing transaction checks the ledger."
        )
    await show_releases(context, table.name)


_FIGURES = {
    "records": "records now",
    "withheld": "withheld",
    "changes": "changes so far",
    "publications": "publications",
}


def _status(name: str, table: Evolving) -> dict[str, ui.label]:
    with card(f"Evolving table {name}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            figures = {key: figure(words) for key, words in _FIGURES.items()}
        l = table.policy.l_of("evolving")
        method = table.policy.evolving.method
        ui.label(f"Method {method}, l = {l}; the person is the column {table.policy.person}.").classes("r-muted")
    return figures


def _fill(figures: dict[str, ui.label], state: dict[str, Any]) -> None:
    for key, label in figures.items():
        label.set_text(f"{state[key]:,}")


def _change(context: PageContext, table: Evolving, figures: dict[str, ui.label]) -> None:
    with card("Change the table"):
        words = status_text("Changes are private until the next publication.")
        op = ui.select(_OPS, value="insert", label="Content of the file").classes("w-full")

        async def take_file(event: events.UploadEventArguments) -> None:
            body = await event.file.read()
            change = await run_or_notify(in_thread(lambda: _apply(table, body, op.value)))
            if change is not None:
                words.set_text(
                    f"{change['inserted']:,} inserted, {change['updated']:,} corrected, {change['deleted']:,} deleted; "
                    "the changes are private until the next publication."
                )
                _fill(figures, await in_thread(table.status))

        drop_area(
            context, "CSV, Parquet, Arrow or NDJSON: all changes are applied at once, or none", on_upload=take_file
        )


def _apply(table: Evolving, body: bytes, op: str) -> dict[str, Any]:
    batch = read_upload(body)
    if op == "delete":
        column = table.policy.evolving.record or str(table.policy.person)
        column = column if column in batch.column_names else batch.column_names[0]
        return table.delete(batch.column(column)).to_dict()
    if op:
        batch = batch.append_column(OP_COLUMN, pa.array([op] * batch.num_rows))
    return change_table(table, batch)


async def show_releases(context: PageContext, publisher: str) -> None:
    """Draw the releases of a source."""
    releases = [doc for doc in await in_thread(context.hub.releases.all) if doc["publisher"] == publisher]
    if not releases:
        return
    with card("Published so far"):
        show_claims(releases[0]["guarantee"]["claims"], releases[0]["guarantee"]["against"])
        rows = [
            [doc["number"], format_time(doc["created"]), f"{doc['records']['published']:,}", f"{doc['added']:,}"]
            for doc in releases
        ]
        data_table(("Release", "Time", "Records", "Persons not published before"), rows)
        with ui.row().classes("gap-4"):
            for doc in releases[:_MAX_LINKS]:
                ui.link(f"Release {doc['number']}", f"/release?id={doc['id']}")
            ui.link("All releases on the page History", "/history")
