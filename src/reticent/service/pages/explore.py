"""Explore: queries on a release with intervals, from the published data as recipients have it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from nicegui import ui

from reticent.read.answer import Answer
from reticent.read.shape.generalized import EVERY_RECORD
from reticent.service import questions
from reticent.service.actor import can_access
from reticent.service.hub import Hub
from reticent.service.pages.charts import GREY, LINE, axis, chart_series
from reticent.service.pages.history import KIND_LABELS
from reticent.service.pages.layout import (
    PageContext,
    card,
    hint_text,
    page_select,
    run_or_notify,
    status_text,
    studio_page,
    wait_for_browser,
)
from reticent.service.pages.safe_elements import chart, data_table
from reticent.service.problems import ServiceError
from reticent.service.query_process import ReleaseHandle
from reticent.service.questions import ReleaseSummary
from reticent.service.routes.common import in_thread

_MAX_LINES = 20_000
_MAX_ANSWERS = 30
_MIN_WHOLE = 10
"""Answers with a number of at least this size are displayed as whole numbers."""


@studio_page("/explore", "Explore", everybody=True)
async def explore(context: PageContext, release: str = "") -> None:
    """Draw the page; `release` is the id of a release, or stream:NAME."""
    names = await in_thread(lambda: _names(context.hub))
    if not names:
        status_text("Nothing has been published yet.")
        return
    here = release or next(iter(names))
    if here not in names:
        status_text("There is no such release, or it was withdrawn. Choose another one.", bad=True)
        here = next(iter(names))
    with card("Query a release"):
        page_select(names, here, "Release", "/explore?release=")
        await wait_for_browser()
        about = await run_or_notify(
            in_thread(lambda: context.hub.query_process.ask(open_release(context.hub, here), questions.summarize))
        )
        if about is not None:
            _ask(context.hub, here, about)


def _names(hub: Hub) -> dict[str, str]:
    names = {
        doc["id"]: f"{KIND_LABELS[doc['kind']]} {doc['source']}, release {doc['number']}"
        for doc in hub.releases.all()
        if not doc["withdrawn"]
    }
    streams = [name for name in sorted(hub.streams) if can_access("stream", name)]
    return names | {f"stream:{name}": f"Stream {name}, latest records" for name in streams}


def open_release(hub: Hub, name: str) -> ReleaseHandle:
    """Return the handle of a release, or of the latest records of a stream; call it per query, as a release may be withdrawn."""
    if name.startswith("stream:"):
        hub.log_read(name)
        return _stream_handle(hub, name.partition(":")[2])
    handle, document = hub.releases.handle(name), hub.releases.get(name)
    hub.log_read(f"{document['kind']}:{document['source']}")
    return handle


def _stream_handle(hub: Hub, name: str) -> ReleaseHandle:
    stream = hub.stream(name)
    last, step, number = stream.cursor, 200, 0
    parts: list[bytes] = []
    while last >= stream.retention.oldest and number < _MAX_LINES:
        entries = list(islice(hub.store.outbox(stream.publisher, after=max(-1, last - step)), min(step, last + 1)))
        parts = [*(entry.payload for entry in entries), *parts]
        last, number = last - step, sum(part.count(b"\n") for part in parts)
    if not number:
        raise ServiceError(409, "empty", "The stream has released no records yet.", "Push some records first.")
    lines, codebook = b"".join(b"".join(parts).splitlines(keepends=True)[-_MAX_LINES:]), stream.codebook()
    return ReleaseHandle(f"stream:{name}:{stream.cursor}", lambda: (lines, codebook))


def _ask(hub: Hub, name: str, about: ReleaseSummary) -> None:
    sensitive = about.sensitive
    values_of = f"{len(about.values):,} values of {sensitive}" if sensitive != EVERY_RECORD else "no sensitive column"
    status_text(f"{about.records:,} records, {values_of}.")
    values = ui.select(list(about.values), value=[], label=f"Values of {sensitive}; empty for all", multiple=True)
    values.props("use-chips use-input").classes("w-full").set_visibility(sensitive != EVERY_RECORD)
    where = ui.input("Where, such as age>=60; sex=female").classes("w-full")
    with ui.row().classes("w-full gap-4"):
        fields = [sensitive, *about.columns] if sensitive != EVERY_RECORD else list(about.columns)
        by = ui.select(fields, value=fields[:1], label="By", multiple=True).classes("grow")
        share = ui.checkbox("Shares instead of counts")
    button = ui.button("Query", icon="query_stats").props("size=lg")
    body = ui.column().classes("w-full gap-2")

    def work() -> Answer:
        conditions = [part.strip() for part in (where.value or "").split(";") if part.strip()]
        query = (list(values.value or ()), conditions, list(by.value or ()), bool(share.value))
        return hub.query_process.ask(open_release(hub, name), questions.count_or_share, *query)

    async def go() -> None:
        answer = await run_or_notify(in_thread(work))
        if answer is not None and not body.is_deleted:
            body.clear()
            with body:
                show(answer)

    button.on_click(go)
    ui.timer(0, go, once=True)


def show(answer: Answer) -> None:
    """Draw an answer as a chart with intervals, with its notes and as a table."""
    rows = answer.to_list()
    names = [name for name in rows[0] if name not in ("estimate", "low", "high", "change")] if rows else []
    shown = sorted(rows, key=lambda row: -row["estimate"])[:_MAX_ANSWERS] if len(rows) > _MAX_ANSWERS else rows
    ui.label(answer.question).classes("font-medium")
    labels = [", ".join(str(row[name]) for name in names) or "all" for row in shown]
    chart(band(labels, shown)).classes("h-72")
    for note in answer.notes:
        hint_text(note)
    parts = ("estimate", "low", "high")
    # All numbers of an answer have the precision of its largest number.
    precision = ",.0f" if any(abs(row[part]) >= _MIN_WHOLE for row in shown for part in parts) else ",.3g"
    cells = [[*(row[name] for name in names), *(format(row[part], precision) for part in parts)] for row in shown]
    data_table((*names, "estimate", "from", "to"), cells).props('data-test="answers"')
    if len(rows) > len(shown):
        hint_text(f"The {len(shown)} largest of {len(rows):,} answers.")


def band(labels: list[str], rows: list[dict[str, Any]], *, time: bool = False) -> dict[str, Any]:
    """Return a chart of estimates with intervals: a curve in a band over time, otherwise points on bars."""
    low, high = [max(0.0, row["low"]) for row in rows], [max(0.0, row["high"]) for row in rows]
    edges = {"type": "line", "stack": "band", "symbol": "none", "lineStyle": {"opacity": 0}, "silent": True}
    if not time:
        edges = {"type": "bar", "stack": "band", "barWidth": 4, "silent": True}
    transparent = {"itemStyle": {"color": "rgba(0,0,0,0)"}}
    widths = [round(b - a, 4) for a, b in zip(low, high, strict=True)]
    filled = (
        {"areaStyle": {"color": LINE, "opacity": 0.25}} if time else {"itemStyle": {"color": LINE, "opacity": 0.35}}
    )
    points = [round(row["estimate"], 4) for row in rows]
    turned = {"rotate": 0 if time else 40, "width": 130 if time else 90}
    words = {"color": GREY, **turned, "overflow": "truncate", "hideOverlap": True}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 16, "bottom": 12, "containLabel": True},
        "xAxis": axis(type="category", data=labels, splitLine={"show": False}, axisLabel=words),
        "yAxis": axis(min=0),
        "series": [
            {"name": "from", **edges, **transparent, "data": [round(value, 4) for value in low]},
            {"name": "width of the interval", **edges, **filled, "data": widths},
            chart_series("line" if time else "scatter", "estimate", points, LINE, symbolSize=4 if time else 9),
        ],
    }
