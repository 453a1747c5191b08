"""A series: several releases of the same persons; the next one has all current records."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui

from reticent.publication.series import Series
from reticent.service.pages.confirmation import final_checkbox, publish_button
from reticent.service.pages.data import drop_area
from reticent.service.pages.evolving import show_releases
from reticent.service.pages.layout import PageContext, card, figure, run_or_notify, status_text, studio_page
from reticent.service.routes.common import in_thread
from reticent.service.routes.series import queue_release
from reticent.service.uploads import read_upload


@studio_page("/series", "Sources")
async def series(context: PageContext, name: str = "") -> None:
    """Draw the page."""
    source = await run_or_notify(in_thread(lambda: context.hub.series_by_name(name)))
    if source is None:
        status_text("There is no such series. Create one on the page Sources.", bad=True)
        return
    number = await in_thread(lambda: len(source.store.ledger(source.name)))
    with card(f"Series {name}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            figure("releases", f"{number:,}")
            figure("candidates or values per group (m)", f"{source.policy.m:,}")
        ui.label(f"Method {source.policy.series.method}; the person is the column {source.policy.person}.").classes(
            "r-muted"
        )
    _next_release_card(context, name, source, number + 1)
    await show_releases(context, source.name)


def _next_release_card(context: PageContext, name: str, source: Series, number: int) -> None:
    body: dict[str, Any] = {}
    with card(f"Release {number}"):
        words = status_text("Upload all current records. Nothing is published until you confirm below.")

        async def take_file(event: events.UploadEventArguments) -> None:
            data = await event.file.read()
            rows = await run_or_notify(in_thread(lambda: _check_upload(source, data)))
            if rows is not None:
                body["data"] = data
                words.set_text(f"{rows:,} records are ready to be published as release {number}.")
                final.enable()

        drop_area(context, "CSV, Parquet, Arrow or NDJSON", on_upload=take_file)
        final = final_checkbox()
        final.disable()
        publish_button(lambda: in_thread(lambda: queue_release(context.hub, name, body["data"])), final)


def _check_upload(source: Series, data: bytes) -> int:
    table = read_upload(data)
    source.policy.check_columns(table.column_names)
    return int(table.num_rows)
