"""A series: the same persons again; all records as they are now become the next release."""

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
    """The page."""
    one = await run_or_notify(in_thread(lambda: context.hub.series_by_name(name)))
    if one is None:
        status_text("There is no such series; begin one on the page Sources.", bad=True)
        return
    number = await in_thread(lambda: len(one.store.ledger(one.name)))
    with card(f"Series {name}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            figure("releases", f"{number:,}")
            figure("values among which each stands", f"{one.policy.m:,}")
        ui.label(f"Method {one.policy.series.method}; the person is the column {one.policy.person}.").classes("r-muted")
    _next_release_card(context, name, one, number + 1)
    await show_releases(context, one.name)


def _next_release_card(context: PageContext, name: str, one: Series, number: int) -> None:
    body: dict[str, Any] = {}
    with card(f"Release {number}"):
        words = status_text("Send all records as they are now; nothing is published before you say so below.")

        async def take_file(event: events.UploadEventArguments) -> None:
            data = await event.file.read()
            rows = await run_or_notify(in_thread(lambda: _check_upload(one, data)))
            if rows is not None:
                body["data"] = data
                words.set_text(f"{rows:,} records are ready to be published as release {number}.")
                sure.enable()

        drop_area(context, "CSV, Parquet, Arrow or NDJSON", on_upload=take_file)
        sure = final_checkbox()
        sure.disable()
        publish_button(lambda: in_thread(lambda: queue_release(context.hub, name, body["data"])), sure)


def _check_upload(one: Series, data: bytes) -> int:
    table = read_upload(data)
    one.policy.check_columns(table.column_names)
    return int(table.num_rows)
