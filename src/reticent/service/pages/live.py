"""Live: the status and the charts of a stream, its feed, its stop button and the counts of a value over time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson
from nicegui import events, ui

from reticent.connectors.files import to_ndjson
from reticent.errors import ReticentError
from reticent.service import questions
from reticent.service.live_stream import LiveStream
from reticent.service.pages.charts import LINE, LINE_2, LINE_3, axis, chart_series, legend, percent_axis, to_percent
from reticent.service.pages.confirmation import show_claims, show_limits
from reticent.service.pages.data import drop_area
from reticent.service.pages.explore import band, open_release
from reticent.service.pages.layout import (
    PageContext,
    card,
    figure,
    hint_text,
    page_select,
    run_or_notify,
    status_text,
    studio_page,
    wait_for_browser,
)
from reticent.service.pages.safe_elements import chart, redraw
from reticent.service.query_process import ReleaseHandle
from reticent.service.routes.common import in_thread
from reticent.service.routes.feeds import PushStep, digest_of
from reticent.service.uploads import NDJSON, read_upload

_FIGURES = {
    "input": "records so far",
    "rows_per_second": "records per second",
    "median_ms": "median time to commit, ms",
    "p99_ms": "99% within, ms",
    "persons": "persons so far",
    "open_groups": "open groups",
    "pending": "pending",
}
_SHARES = {"sau": "counterfeits (SAU)", "sau_limit": "lowest possible SAU", "omission_rate": "omission rate"}
_MAX_POINTS, _BATCH = 400, 1_000


@studio_page("/live", "Sources")
async def live(context: PageContext, stream: str = "", value: str = "") -> None:
    """Draw the page; `value` is the value of the curve."""
    names = sorted(context.hub.streams)
    if not names or (stream and stream not in names):
        words = "There is no such stream" if stream else "There are no streams yet"
        status_text(f"{words}. Create one on the page Sources.", bad=bool(stream))
        return
    here = stream or names[0]
    if len(names) > 1:
        page_select(names, here, "Stream", "/live?stream=")
    _status_card(context, here)
    is_empty = not context.hub.stream(here).status()["input"]
    if is_empty:  # the charts are empty until the first records
        _feed_card(context, here)
    body = ui.column().classes("w-full")
    _chart_cards(context, here)
    if not is_empty:
        _feed_card(context, here)
    await wait_for_browser()
    with body:
        await _outbreak(context, here, value)


def _status_card(context: PageContext, name: str) -> None:
    stream = context.hub.stream(name)
    status = stream.status()
    with card(f"Stream {name}"):
        ui.label(f"Method {status['method']}.").classes("r-muted")
        show_claims(status["guarantee"], status["against"] or "no attacker yet")
        show_limits(status["not_covered"])
        alarm = ui.label(
            "The omission rate is too high: too many true values are not among their candidates. Check whether the prior has all values "
            "and whether the transition kernel fits persons with several records."
        )
        alarm.classes("text-negative font-medium").props("role=alert")
        with ui.grid().classes("w-full grid-cols-2 sm:grid-cols-3 md:grid-cols-6 gap-4"):
            known = {**status, **status["metrics"]}
            labels = {key: figure(words) for key, words in _FIGURES.items() if key in known or key == "persons"}
        _stop_button(context, stream)

    def look() -> None:
        state = stream.status()
        for key, label in labels.items():
            label.set_text(_figure_text(key, state.get(key, state["metrics"].get(key))))
        alarm.set_visibility(bool(state["metrics"].get("alarm")))

    look()
    ui.timer(1.0, look)


def _chart_cards(context: PageContext, name: str) -> None:
    """Draw the charts since the start of the server, and the latest lines."""
    stream = context.hub.stream(name)
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        with card("Records per second"):
            rates = chart(_chart(["records per second"], [LINE], _rates(stream))).classes("h-56")
        with card("Shares of the records"):
            hint_text(
                "SAU: candidates that are counterfeits. Omission rate: true values that are not among the candidates."
            )
            names, colors = list(_SHARES.values()), [LINE, LINE_2, LINE_3]
            shares = chart(_chart(names, colors, _shares(stream)) | {"yAxis": percent_axis(min=0)}).classes("h-56")
    with card("Latest released records"), ui.element("div").classes("r-scroll").props("tabindex=0"):
        latest = ui.label().classes("r-code").props('aria-live=off data-test="latest"')

    def look() -> None:
        _update_chart(rates, _rates(stream))
        _update_chart(shares, _shares(stream))
        latest.set_text(
            "\n".join(map(_line_text, list(stream.latest)[-8:])) or "No records since the start of the server."
        )

    look()
    ui.timer(1.0, look)


def _stop_button(context: PageContext, stream: LiveStream) -> None:
    words = status_text("")

    def update_text() -> None:
        number = stream.status()["pending"]
        pending = f" {number:,} pending records stay pending." if number else ""
        words.set_text(
            f"Stopped: the stream takes no more records. Released records stay readable.{pending}"
            if stream.stopped
            else "The stream takes records."
        )
        button.set_text("Resume" if stream.stopped else "Stop")

    async def toggle() -> None:
        await run_or_notify(in_thread(lambda: context.hub.halt(stream.name, stop=not stream.stopped)))
        update_text()

    button = ui.button("Stop", on_click=toggle).props("outline")
    update_text()


def _feed_card(context: PageContext, name: str) -> None:
    with card("Push records"):
        status_text("This publishes: each record is released at once to all recipients of the stream.")

        async def take_file(event: events.UploadEventArguments) -> None:
            body = await event.file.read()
            counts = await run_or_notify(in_thread(lambda: _push_file(context, name, body)))
            if counts is not None:
                ui.notify(_push_message(*counts))

        drop_area(context, "CSV, Parquet, Arrow or NDJSON: released at once", on_upload=take_file)
        hint_text(f"Feeds send POST requests to /api/v1/streams/{name}/records with a token of the role feed.")


def _push_message(records: int, before: int) -> str:
    words = f"{records:,} records were accepted."
    return f"{words} {before:,} records had been accepted before and were not released again." if before else words


def _push_file(context: PageContext, name: str, body: bytes) -> tuple[int, int]:
    """Push a file in batches and return the numbers of new and repeated records; a repeated file is released once."""
    stream, table, before = context.hub.stream(name), read_upload(body), 0
    for start in range(0, table.num_rows, _BATCH):
        lines = b"".join(map(to_ndjson, table.slice(start, _BATCH).to_batches()))
        key = f"studio-{digest_of(lines)}"
        pushed = context.hub.writer.submit(PushStep(stream, lines, NDJSON, key)).result()
        before += min(_BATCH, table.num_rows - start) if pushed.replayed else 0
    return int(table.num_rows) - before, before


async def _outbreak(context: PageContext, name: str, chosen_value: str) -> None:
    """Draw a recipient's estimates of a value over time, with their intervals."""
    process, handle = context.hub.query_process, await in_thread(lambda: _release_handle(context, name))
    about = None if handle is None else await run_or_notify(in_thread(lambda: process.ask(handle, questions.summarize)))
    with card("Recipients' estimates over time"):
        if handle is None or about is None:
            status_text("There are no released records yet. Push some records first.")
            return
        first = (
            chosen_value
            if chosen_value in about.values
            else await in_thread(lambda: process.ask(handle, questions.most_uneven_value))
        )
        value = ui.select(list(about.values), value=first, label=about.sensitive).classes("w-full")
        status_text("The curve is the estimate from the released records; the band is its 95% interval.")
        picture = chart(band([], [], time=True)).classes("h-64").props('data-test="outbreak"')
        changes_label = status_text("")

        async def draw(current: ReleaseHandle | None = None) -> None:
            latest = current or await in_thread(lambda: _release_handle(context, name)) or handle
            rows = await run_or_notify(in_thread(lambda: process.ask(latest, questions.windows, str(value.value))))
            if rows is None or picture.is_deleted:
                return
            words = [str(next(iter(row.values()))) for row in rows]
            redraw(picture, band(words, rows, time=True))
            changes = [word for word, row in zip(words, rows, strict=True) if row.get("change")]
            text = f"The level changes at {', '.join(changes)}." if changes else "The level does not change."
            by_number = " The axis counts records, since no published column has days or hours."
            changes_label.set_text(text + by_number * all(word.isdigit() for word in words))

        value.on_value_change(lambda: draw(handle))
        await draw(handle)
        ui.timer(30.0, draw, immediate=False)


def _release_handle(context: PageContext, name: str) -> ReleaseHandle | None:
    try:
        return open_release(context.hub, f"stream:{name}")
    except ReticentError:
        return None


def _figure_text(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if key.endswith("_ms"):
        return f"{value:,.1f}" if value else "-"  # no batch in the last seconds
    return f"{value:,.0f}"


def _line_text(line: bytes) -> str:
    record = orjson.loads(line)
    if record["type"] == "group":
        return f"group {record['group']}: {', '.join(str(value) for value, _ in record['candidates'])}"
    fields = ", ".join(f"{key} {value}" for key, value in record["quasi"].items())
    candidates = " / ".join(map(str, record.get("candidates", ())))
    return f"#{record['seq']}  {fields}  →  {candidates or record.get('group') or record.get('sensitive')}"


Lines = list[list[list[Any]]]


def _trend_points(stream: LiveStream) -> list[tuple[float, int, dict[str, float]]]:
    points = list(stream.trend)
    step = -(-len(points) // _MAX_POINTS) or 1
    return [*points[:-1:step], *points[-1:]]


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _rates(stream: LiveStream) -> Lines:
    """Return records per second between two points; 0 while no records arrive."""
    points = _trend_points(stream)
    line = [
        [_iso_time(after[0]), round((after[1] - before[1]) / max(1e-3, after[0] - before[0]), 1)]
        for before, after in pairwise(points)
    ]
    if points and time.time() - points[-1][0] > 5:
        line += [[_iso_time(points[-1][0] + 1), 0], [_iso_time(time.time()), 0]]
    return [line]


def _shares(stream: LiveStream) -> Lines:
    return [
        [
            [_iso_time(at), to_percent(figures[key])]
            for at, _, figures in _trend_points(stream)
            if figures.get(key) is not None
        ]
        for key in _SHARES
    ]


def _chart(names: list[str], colors: list[str], lines: Lines) -> dict[str, Any]:
    known = [name for name, line in zip(names, lines, strict=True) if line]
    return {
        "animation": False,
        "useUTC": True,
        "grid": {"left": 8, "right": 16, "top": 28, "bottom": 8, "containLabel": True},
        "legend": legend(*known) if len(names) > 1 else {"show": False},
        "xAxis": axis(type="time", splitLine={"show": False}),
        "yAxis": axis(min=0),
        "series": [
            # A single point has no line, so it needs a symbol.
            chart_series("line", name, line, color, showSymbol=len(line) == 1, lineStyle={"width": 2})
            for name, color, line in zip(names, colors, lines, strict=True)
        ],
    }


def _update_chart(picture: ui.echart, lines: Lines) -> None:
    for series, line in zip(picture.options["series"], lines, strict=True):
        series["data"], series["showSymbol"] = line, len(line) == 1
    picture.update()
