"""History: all publications over time and the persons that each added, from the ledger of the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import sqlalchemy as sa
from nicegui import ui

from reticent.service.actor import can_access
from reticent.service.pages.charts import axis, chart_series, legend
from reticent.service.pages.compare import COLORS
from reticent.service.pages.layout import PageContext, card, format_time, hint_text, status_text, studio_page
from reticent.service.pages.release import download, highest_risk, run_audit
from reticent.service.pages.safe_elements import chart, set_label
from reticent.service.routes.common import in_thread
from reticent.store import Store, schema

KIND_LABELS = {"table": "Table", "evolving": "Evolving table", "series": "Series", "stream": "Stream"}
_MAX_ENTRIES = 100
_MINUTE_DIGITS, _HOUR_DIGITS = 16, 13
_MAX_POINTS = 300


@dataclass(frozen=True)
class PublicationEntry:
    """The number of persons whom a publication published for the first time at a time."""

    publisher: str
    time: str
    persons: int


def persons_over_time(store: Store, *, digits: int = _MINUTE_DIGITS) -> list[PublicationEntry]:
    """Return the entries by time, cut to `digits` characters, so that a stream has one entry per minute or hour."""
    table = schema.population.c
    time = sa.func.substr(table.time, 1, digits)
    size = sa.func.sum(sa.func.length(table.persons) - store.seal.overhead)
    rows = store.read(sa.select(table.publisher, time, size).group_by(table.publisher, time).order_by(time))
    return [PublicationEntry(publisher, at, int(length) // 8) for publisher, at, length in rows]


def _persons_chart(store: Store, names: dict[str, str]) -> dict[str, Any]:
    """Return a chart of the persons published so far, with a line per named publication."""
    entries, totals = [one for one in persons_over_time(store) if one.publisher in names], dict[str, int]()
    lines: dict[str, list[Any]] = {}
    for one in entries:
        totals[one.publisher] = totals.get(one.publisher, 0) + one.persons
        lines.setdefault(one.publisher, []).append([f"{one.time}Z", totals[one.publisher]])
    words = {publisher: names[publisher] for publisher in lines}
    last = max((one.time for one in entries), default="")
    return {
        "useUTC": True,
        "grid": {"left": 8, "right": 24, "top": 60, "bottom": 20, "containLabel": True},
        "legend": legend(*words.values()) | {"type": "scroll"},
        "xAxis": axis(type="time"),
        "yAxis": axis(name="persons", min=0),
        "series": [
            chart_series("line", words[publisher], [*_thin(line), [f"{last}Z", line[-1][1]]], color, step="end")
            for (publisher, line), color in zip(lines.items(), cycle(COLORS), strict=False)
        ],
    }


def _thin(line: list[Any]) -> list[Any]:
    step = -(-len(line) // _MAX_POINTS)
    return [*line[:-1:step], line[-1]]


@studio_page("/history", "History", everybody=True)
async def history(context: PageContext) -> None:
    """Draw the page."""
    releases = await in_thread(context.hub.releases.all)
    hours = await in_thread(lambda: persons_over_time(context.hub.store, digits=_HOUR_DIGITS))
    streams = [one for one in hours if one.publisher.startswith("stream:") and can_access(*one.publisher.split(":", 1))]
    if not releases and not streams:
        status_text("Nothing has been published yet.")
        return
    names = {doc["publisher"]: f"{KIND_LABELS[doc['kind']]} {doc['source']}" for doc in releases}
    names |= {one.publisher: f"Stream {one.publisher.partition(':')[2]}" for one in streams}
    with card("Persons published so far"):
        options = await in_thread(lambda: _persons_chart(context.hub.store, names))
        chart(options).classes("h-64")
        hint_text("Records without a person are not counted.")
    _publication_list(context, releases, streams)


def _publication_list(context: PageContext, releases: list[dict[str, Any]], streams: list[PublicationEntry]) -> None:
    entries: list[tuple[str, Any]] = [(doc["created"], doc) for doc in releases]
    entries += [(one.time + ":59", one) for one in streams]
    with card("Publications, newest first"):
        for _, entry in sorted(entries, key=lambda pair: pair[0], reverse=True)[:_MAX_ENTRIES]:
            if isinstance(entry, PublicationEntry):
                _stream_row(context, entry)
            else:
                _release_row(context, releases, entry)


def _stream_row(context: PageContext, entry: PublicationEntry) -> None:
    name = entry.publisher.partition(":")[2]
    with ui.row().classes("w-full items-center gap-3"):
        with ui.column().classes("gap-0 grow"):
            if context.is_custodian:
                ui.link(f"Stream {name}", f"/live?stream={name}").classes("font-medium")
            else:
                ui.label(f"Stream {name}").classes("font-medium")
            hint_text(f"In the hour from {entry.time.replace('T', ' ')}:00")
            ui.label(f"Added: up to {entry.persons:,} persons not published before by this stream").classes("text-sm")
        go = partial(ui.navigate.to, f"/explore?release={entry.publisher}")
        query = ui.button("Query", icon="query_stats", on_click=go).props("flat dense no-caps")
        set_label(query, f"Query the stream {name}")


def _release_row(context: PageContext, releases: list[dict[str, Any]], release: dict[str, Any]) -> None:
    counts, holds, withdrawn = release["records"], release["verification"]["holds"], release["withdrawn"]
    with ui.row().classes("w-full items-center gap-3").props('data-test="release"'):
        with ui.column().classes("gap-0 grow"):
            title = f"{KIND_LABELS[release['kind']]} {release['source']}, release {release['number']}"
            ui.link(title, f"/release?id={release['id']}").classes("font-medium")
            hint_text(
                f"{format_time(release['created'])}, {release['method']}: {counts['published']:,} of {counts['input']:,} records; "
                f"{counts['withheld']:,} withheld, {counts['suppressed']:,} suppressed; risk bound {highest_risk(release):.2f} for the stated attacker"
            )
            ui.label(_added_text(release)).classes("text-sm")
        if withdrawn:
            ui.badge("withdrawn", color="negative").props("outline")
        ui.badge("verified" if holds else "refuted", color="positive" if holds else "negative").props("outline")
        if context.is_custodian:
            audited = _releases_up_to(releases, release)
            button = ui.button("Audit", icon="gavel", on_click=partial(run_audit, context, audited))
            set_label(button, f"Audit {title}").props("flat dense no-caps")
        if not withdrawn:
            fetch = ui.button("CSV", icon="download", on_click=partial(download, context, release["id"], "csv"))
            set_label(fetch, f"Download {title} as CSV").props("flat dense no-caps")


def _releases_up_to(releases: list[dict[str, Any]], release: dict[str, Any]) -> list[str]:
    """Return a release and all earlier ones of the same publication, which recipients also have."""
    same = [doc for doc in releases if doc["publisher"] == release["publisher"] and doc["kind"] != "table"]
    before = sorted((doc for doc in same if doc["number"] <= release["number"]), key=lambda doc: int(doc["number"]))
    return [doc["id"] for doc in before] or [release["id"]]


def _added_text(release: dict[str, Any]) -> str:
    if not release["persons"]:
        return "Added: records without a person column in the policy"
    return (
        f"Added: {release['added']:,} persons not published before; {release['persons']:,} in this publication so far"
    )
