"""Live: a running stream: feed it, watch it over time, stop it; what broke out, as its recipients see it."""

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
    "median_ms": "median to disk, ms",
    "p99_ms": "99% within, ms",
    "persons": "persons so far",
    "open_groups": "open groups",
    "pending": "held back",
}
_SHARES = {"sau": "counterfeits (SAU)", "sau_limit": "their least share", "omission_rate": "values not offered"}
_MAX_POINTS, _BATCH = 400, 1_000


@studio_page("/live", "Sources")
async def live(context: PageContext, stream: str = "", value: str = "") -> None:
    """The page; `value` is the one whose curve is drawn."""
    names = sorted(context.hub.streams)
    if not names or (stream and stream not in names):
        words = "There is no such stream" if stream else "There is no stream yet"
        status_text(f"{words}; begin one on the page Sources.", bad=bool(stream))
        return
    here = stream or names[0]
    if len(names) > 1:
        page_select(names, here, "Stream", "/live?stream=")
    _status_card(context, here)
    fresh = not context.hub.stream(here).status()["input"]
    if fresh:  # nothing to see before it is fed
        _feed_card(context, here)
    body = ui.column().classes("w-full")
    _chart_cards(context, here)
    if not fresh:
        _feed_card(context, here)
    await wait_for_browser()
    with body:
        await _outbreak(context, here, value)


def _status_card(context: PageContext, name: str) -> None:
    stream = context.hub.stream(name)
    status = stream.status()
    with card(f"Stream {name}"):
        ui.label(f"Method {status['method']}.").classes("r-muted")
        show_claims(status["guarantee"], status["against"] or "nobody yet")
        show_limits(status["not_covered"])
        alarm = ui.label(
            "The stream drifts: too many values are not among their candidates. The prior lacks them, or persons came back with other "
            "values than the kernel leads to."
        )
        alarm.classes("text-negative font-medium").props("role=alert")
        with ui.grid().classes("w-full grid-cols-2 sm:grid-cols-3 md:grid-cols-6 gap-4"):
            known = {**status, **status["metrics"]}
            shown = {key: figure(words) for key, words in _FIGURES.items() if key in known or key == "persons"}
        _stop_button(context, stream)

    def look() -> None:
        state = stream.status()
        for key, label in shown.items():
            label.set_text(_figure_text(key, state.get(key, state["metrics"].get(key))))
        alarm.set_visibility(bool(state["metrics"].get("alarm")))

    look()
    ui.timer(1.0, look)


def _chart_cards(context: PageContext, name: str) -> None:
    """What is remembered since the server began, with its times."""
    stream = context.hub.stream(name)
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        with card("Records per second"):
            rates = chart(_chart(["records per second"], [LINE], _rates(stream))).classes("h-56")
        with card("Shares of the records"):
            hint_text("Offered values that nobody has, and true values that are not among those offered.")
            names, colours = list(_SHARES.values()), [LINE, LINE_2, LINE_3]
            shares = chart(_chart(names, colours, _shares(stream)) | {"yAxis": percent_axis(min=0)}).classes("h-56")
    with card("Released just now"), ui.element("div").classes("r-scroll").props("tabindex=0"):
        latest = ui.label().classes("r-code").props('aria-live=off data-test="latest"')

    def look() -> None:
        _update_chart(rates, _rates(stream))
        _update_chart(shares, _shares(stream))
        latest.set_text("\n".join(map(_line_text, list(stream.latest)[-8:])) or "Nothing since the server began.")

    look()
    ui.timer(1.0, look)


def _stop_button(context: PageContext, stream: LiveStream) -> None:
    words = status_text("")

    def say() -> None:
        number = stream.status()["pending"]
        rest = f" {number:,} records that it holds back stay held." if number else ""
        words.set_text(
            f"Stopped: it takes no more records; what was released stays readable.{rest}"
            if stream.stopped
            else "It takes records."
        )
        button.set_text("Go on" if stream.stopped else "Stop")

    async def turn() -> None:
        await run_or_notify(in_thread(lambda: context.hub.halt(stream.name, stop=not stream.stopped)))
        say()

    button = ui.button("Stop", on_click=turn).props("outline")
    say()


def _feed_card(context: PageContext, name: str) -> None:
    with card("Feed it"):
        status_text("Each record is released as it comes, to everybody who may read the stream: this is publishing.")

        async def take_file(event: events.UploadEventArguments) -> None:
            body = await event.file.read()
            taken = await run_or_notify(in_thread(lambda: _push_file(context, name, body)))
            if taken is not None:
                ui.notify(_push_message(*taken))

        drop_area(context, "CSV, Parquet, Arrow or NDJSON: released at once", on_upload=take_file)
        hint_text(f"Feeds post to /api/v1/streams/{name}/records with a token of the role feed.")


def _push_message(records: int, before: int) -> str:
    words = f"{records:,} records were taken in."
    return f"{words} {before:,} others had come before, and were not released again." if before else words


def _push_file(context: PageContext, name: str, body: bytes) -> tuple[int, int]:
    """Pushes a file batch by batch; a file that comes twice is released once. Records that were taken, and that were there."""
    stream, table, before = context.hub.stream(name), read_upload(body), 0
    for start in range(0, table.num_rows, _BATCH):
        lines = b"".join(map(to_ndjson, table.slice(start, _BATCH).to_batches()))
        key = f"studio-{digest_of(lines)}"
        pushed = context.hub.writer.submit(PushStep(stream, lines, NDJSON, key)).result()
        before += min(_BATCH, table.num_rows - start) if pushed.replayed else 0
    return int(table.num_rows) - before, before


async def _outbreak(context: PageContext, name: str, chosen_value: str) -> None:
    """How often a value is, over time, with the interval that recipients get."""
    asking, place = context.hub.query_process, await in_thread(lambda: _release_handle(context, name))
    about = None if place is None else await run_or_notify(in_thread(lambda: asking.ask(place, questions.summarize)))
    with card("What recipients see over time"):
        if place is None or about is None:
            status_text("Nothing to ask yet: feed it first.")
            return
        first = (
            chosen_value
            if chosen_value in about.values
            else await in_thread(lambda: asking.ask(place, questions.most_uneven_value))
        )
        value = ui.select(list(about.values), value=first, label=about.sensitive).classes("w-full")
        status_text("The curve is the estimate from the released lines alone, the band its 95% interval.")
        picture = chart(band([], [], time=True)).classes("h-64").props('data-test="outbreak"')
        marks = status_text("")

        async def draw(known: ReleaseHandle | None = None) -> None:
            fresh = known or await in_thread(lambda: _release_handle(context, name)) or place
            rows = await run_or_notify(in_thread(lambda: asking.ask(fresh, questions.windows, str(value.value))))
            if rows is None or picture.is_deleted:
                return
            words = [str(next(iter(row.values()))) for row in rows]
            redraw(picture, band(words, rows, time=True))
            changes = [word for word, row in zip(words, rows, strict=True) if row.get("change")]
            said = f"A new level begins at {', '.join(changes)}." if changes else "No change of level."
            order = " Along the records in their order: no published column tells the time finely."
            marks.set_text(said + order * all(word.isdigit() for word in words))

        value.on_value_change(lambda: draw(place))
        await draw(place)
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
        return f"{value:,.1f}" if value else "-"  # nothing came in the last seconds
    return f"{value:,.0f}"


def _line_text(line: bytes) -> str:
    record = orjson.loads(line)
    if record["type"] == "group":
        return f"group {record['group']}: {', '.join(str(value) for value, _ in record['candidates'])}"
    shown = ", ".join(f"{key} {value}" for key, value in record["quasi"].items())
    offered = " / ".join(map(str, record.get("candidates", ())))
    return f"#{record['seq']}  {shown}  →  {offered or record.get('group') or record.get('sensitive')}"


Lines = list[list[list[Any]]]


def _trend_points(stream: LiveStream) -> list[tuple[float, int, dict[str, float]]]:
    points = list(stream.trend)
    step = -(-len(points) // _MAX_POINTS) or 1
    return [*points[:-1:step], *points[-1:]]


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _rates(stream: LiveStream) -> Lines:
    """Records a second between two points; none while nobody feeds it."""
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


def _chart(names: list[str], colours: list[str], lines: Lines) -> dict[str, Any]:
    known = [name for name, line in zip(names, lines, strict=True) if line]
    return {
        "animation": False,
        "useUTC": True,
        "grid": {"left": 8, "right": 16, "top": 28, "bottom": 8, "containLabel": True},
        "legend": legend(*known) if len(names) > 1 else {"show": False},
        "xAxis": axis(type="time", splitLine={"show": False}),
        "yAxis": axis(min=0),
        "series": [
            # A line has two points.
            chart_series("line", name, line, colour, showSymbol=len(line) == 1, lineStyle={"width": 2})
            for name, colour, line in zip(names, colours, lines, strict=True)
        ],
    }


def _update_chart(picture: ui.echart, lines: Lines) -> None:
    for series, line in zip(picture.options["series"], lines, strict=True):
        series["data"], series["showSymbol"] = line, len(line) == 1
    picture.update()
