"""Data: upload a table, or continue with an uploaded one."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import events, ui

from reticent.service.pages.confirmation import confirm_dialog
from reticent.service.pages.layout import PageContext, card, format_time, hint_text, run_or_notify, steps, studio_page
from reticent.service.pages.safe_elements import set_label, uploader
from reticent.service.routes.common import in_thread
from reticent.service.routes.tables import store_table


@studio_page("/", "Data", everybody=True)
async def data(context: PageContext) -> None:
    """Draw the page; analysts are sent to the page History."""
    if not context.is_custodian:
        ui.navigate.to("/history")
        return
    steps("Data")
    upload(context)
    tables = await in_thread(context.hub.tables.all)
    if tables:
        with card("Uploaded tables"):
            for table in tables[:50]:
                _table_row(context, table)


def upload(context: PageContext) -> None:
    """Draw the upload of a table, which continues with the page Roles."""

    async def take_file(event: events.UploadEventArguments) -> None:
        content = await event.file.read()
        name = file_name(event.file.name)
        document = await run_or_notify(in_thread(lambda: store_table(context.hub, content, name)))
        if document is not None:
            ui.navigate.to(f"/roles?table={document['id']}")

    with card("Upload a table"):
        ui.label(
            "CSV, Parquet, Arrow or NDJSON: a table to release, or a sample of a stream, an evolving table or a series. The server "
            "keeps it in its private store only."
        ).classes("r-muted")
        drop_area(context, "Choose a file, or drop it here", on_upload=take_file)


def drop_area(context: PageContext, label: str, *, several: bool = False, **handlers: Any) -> ui.upload:
    """Return an upload area with the size limit of the server."""
    return uploader(label, largest=context.settings.max_body, several=several, **handlers)


def file_name(text: str) -> str:
    """Return a file name without special characters."""
    return "".join(c if c.isalnum() or c in " ._()-" else "_" for c in text)[:100]


async def read_policy_files(event: events.MultiUploadEventArguments) -> tuple[list[str], dict[str, str]]:
    """Return the texts of the uploaded policies, and the texts of the other files by name."""
    texts = {file_name(file.name): (await file.read()).decode("utf-8", "replace") for file in event.files}
    policies = [name for name in texts if name.endswith((".yaml", ".yml", ".json"))]
    return [texts.pop(name) for name in policies], texts


def _table_row(context: PageContext, table: dict[str, Any]) -> None:
    async def delete() -> None:
        await run_or_notify(in_thread(lambda: context.hub.delete_table(table["id"], at_once=True)))
        ui.navigate.to("/")

    def confirm() -> None:
        words = "This cannot be undone. Releases of this table stay published."
        confirm_dialog(f"Delete {table['name']}, its roles and its drafts?", words, "Delete table", delete)

    with ui.row().classes("w-full items-center gap-2"):
        with ui.column().classes("gap-0 grow"):
            ui.link(table["name"], f"/roles?table={table['id']}").classes("font-medium")
            hint_text(
                f"{table['rows']:,} rows, {len(table['columns'])} columns, uploaded {format_time(table['created'])}"
            )
        for name, path in (("Roles", "/roles"), ("Drafts", "/drafts"), ("Compare", "/compare")):
            button = ui.button(name, on_click=partial(ui.navigate.to, f"{path}?table={table['id']}"))
            set_label(button, f"{name}: {table['name']}").props("flat dense no-caps")
        button = ui.button(icon="delete", on_click=confirm).props("flat dense round")
        set_label(button, f"Delete {table['name']} and its drafts")
