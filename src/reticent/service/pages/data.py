"""Data: send a table, or go on with one that was sent."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import events, ui

from reticent.service.pages.deeds import ask_once_more
from reticent.service.pages.layout import PageContext, card, moment, small, steps, studio, trying
from reticent.service.pages.safe import labelled, uploader
from reticent.service.routes.common import aside
from reticent.service.routes.tables import keep


@studio("/", "Data", everybody=True)
async def data(context: PageContext) -> None:
    """The page; analysts go on to what was released."""
    if not context.custodian:
        ui.navigate.to("/history")
        return
    steps("Data")
    upload(context)
    tables = await aside(context.hub.tables.all)
    if tables:
        with card("Tables that were sent"):
            for table in tables[:50]:
                _table_row(context, table)


def upload(context: PageContext) -> None:
    """Takes a table in and goes on to its roles."""

    async def taken(event: events.UploadEventArguments) -> None:
        content = await event.file.read()
        name = file_name(event.file.name)
        document = await trying(aside(lambda: keep(context.hub, content, name)))
        if document is not None:
            ui.navigate.to(f"/roles?table={document['id']}")

    with card("Send a table"):
        ui.label(
            "CSV, Parquet, Arrow or NDJSON: a table to release, or a sample of what will stream or change. It goes into "
            "this machine's private store and nowhere else."
        ).classes("r-muted")
        drop(context, "Choose a file, or drop it here", on_upload=taken)


def drop(context: PageContext, label: str, *, several: bool = False, **handlers: Any) -> ui.upload:
    """A place to drop files, as large as the server takes them."""
    return uploader(label, largest=context.settings.max_body, several=several, **handlers)


def file_name(text: str) -> str:
    """A file's name without what could mean something else."""
    return "".join(c if c.isalnum() or c in " ._()-" else "_" for c in text)[:100]


async def texts_of(event: events.MultiUploadEventArguments) -> tuple[list[str], dict[str, str]]:
    """The texts of the policies among files that were sent together, and of the others by name."""
    texts = {file_name(file.name): (await file.read()).decode("utf-8", "replace") for file in event.files}
    policies = [name for name in texts if name.endswith((".yaml", ".yml", ".json"))]
    return [texts.pop(name) for name in policies], texts


def _table_row(context: PageContext, table: dict[str, Any]) -> None:
    async def forget() -> None:
        await trying(aside(lambda: context.hub.forget(table["id"], at_once=True)))
        ui.navigate.to("/")

    def asked() -> None:
        words = "It cannot be brought back. What was released of it stays released."
        ask_once_more(f"Forget {table['name']}, its roles and its drafts?", words, "Forget it", forget)

    with ui.row().classes("w-full items-center gap-2"):
        with ui.column().classes("gap-0 grow"):
            ui.link(table["name"], f"/roles?table={table['id']}").classes("font-medium")
            small(f"{table['rows']:,} rows, {len(table['columns'])} columns, sent {moment(table['created'])}")
        for name, path in (("Roles", "/roles"), ("Try", "/try"), ("Compare", "/compare")):
            button = ui.button(name, on_click=partial(ui.navigate.to, f"{path}?table={table['id']}"))
            labelled(button, f"{name}: {table['name']}").props("flat dense no-caps")
        button = ui.button(icon="delete", on_click=asked).props("flat dense round")
        labelled(button, f"Forget {table['name']} and its drafts")
