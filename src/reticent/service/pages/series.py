"""A series: the same persons again; all records as they are now become the next release."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui

from reticent.publication.series import Series
from reticent.service.pages.data import drop
from reticent.service.pages.deeds import for_good, sure_first
from reticent.service.pages.evolving import releases
from reticent.service.pages.layout import PageContext, card, figure, status_text, studio, trying
from reticent.service.routes.common import aside
from reticent.service.routes.series import begin
from reticent.service.uploads import read_upload


@studio("/series", "Sources")
async def series(context: PageContext, name: str = "") -> None:
    """The page."""
    one = await trying(aside(lambda: context.hub.a_series(name)))
    if one is None:
        status_text("There is no such series; begin one on the page Sources.", bad=True)
        return
    number = await aside(lambda: len(one.store.ledger(one.name)))
    with card(f"Series {name}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            figure("releases", f"{number:,}")
            figure("values among which each stands", f"{one.policy.m:,}")
        ui.label(f"Method {one.policy.series.method}; the person is the column {one.policy.person}.").classes("r-muted")
    _next(context, name, one, number + 1)
    await releases(context, one.name)


def _next(context: PageContext, name: str, one: Series, number: int) -> None:
    body: dict[str, Any] = {}
    with card(f"Release {number}"):
        words = status_text("Send all records as they are now; nothing is published before you say so below.")

        async def taken(event: events.UploadEventArguments) -> None:
            data = await event.file.read()
            rows = await trying(aside(lambda: _checked(one, data)))
            if rows is not None:
                body["data"] = data
                words.set_text(f"{rows:,} records are ready to be published as release {number}.")
                sure.enable()

        drop(context, "CSV, Parquet, Arrow or NDJSON", on_upload=taken)
        sure = sure_first()
        sure.disable()
        for_good(lambda: aside(lambda: begin(context.hub, name, body["data"])), sure)


def _checked(one: Series, data: bytes) -> int:
    table = read_upload(data)
    one.policy.check_columns(table.column_names)
    return int(table.num_rows)
