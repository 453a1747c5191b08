"""Live: a running stream, second by second."""

from __future__ import annotations

from collections import deque
from typing import Any

import orjson
from nicegui import ui
from starlette.requests import Request

from reticent.release.wording import claims_in_words
from reticent.service.pages.layout import GREY, LINE, LINE_2, LINE_3, Visit, axis, card, figure, legend, page, visit_of

_POINTS = 120


@ui.page("/live")
async def live(request: Request, stream: str = "") -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Live"):
        if not visit.custodian:
            return
        names = sorted(visit.hub.streams)
        if not names:
            ui.label("There is no stream yet. Begin one with POST /api/v1/streams.")
            return
        here = stream if stream in names else names[0]
        if len(names) > 1:
            ui.select(names, value=here, label="Stream", on_change=lambda e: ui.navigate.to(f"/live?stream={e.value}"))
        _watch(visit, here)


def _watch(visit: Visit, name: str) -> None:
    status = visit.hub.stream(name).status()
    with card(f"Stream {name}"):
        ui.label(_promise(status)).classes("r-muted")
        alarm = ui.label("The stream has drifted away from its prior: too many values are not among their candidates.")
        alarm.classes("text-negative font-medium").props("role=alert")
        with ui.grid().classes("w-full grid-cols-2 sm:grid-cols-3 md:grid-cols-6 gap-4"):
            shown = {key: figure(words) for key, words in _FIGURES.items()}
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        with card("Records per second"):
            rates = ui.echart(_chart(["records per second"], [LINE])).classes("w-full h-56")
        with card("Shares"):
            shares = ui.echart(_chart(list(_SHARES.values()), [LINE, LINE_2, LINE_3])).classes("w-full h-56")
    with card("Released just now"), ui.element("div").classes("r-scroll"):
        latest = ui.label().classes("r-code").props('aria-live=off data-test="latest"')
    history: deque[list[float]] = deque(maxlen=_POINTS)

    def look() -> None:
        running = visit.hub.stream(name)
        state = running.status()
        figures = state["metrics"]
        for key, label in shown.items():
            label.set_text(_text(key, state.get(key, figures.get(key))))
        alarm.set_visibility(bool(figures.get("alarm")))
        history.append([state["rows_per_second"], *(figures.get(key, 0.0) for key in _SHARES)])
        _plot(rates, [[point[0] for point in history]])
        _plot(shares, [[point[i] for point in history] for i in (1, 2, 3)])
        latest.set_text("\n".join(_line(line) for line in list(running.latest)[-8:]) or "Nothing yet.")

    look()
    ui.timer(1.0, look)


_FIGURES = {
    "rows_in": "records so far",
    "rows_per_second": "records per second",
    "median_ms": "median to disk, ms",
    "p99_ms": "99% within, ms",
    "persons": "persons so far",
    "open_groups": "open groups",
    "held": "held back",
}
_SHARES = {"sau": "counterfeits (SAU)", "sau_limit": "their least share", "eta": "values not offered"}


def _text(key: str, value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if key.endswith("_ms") else f"{value:,.0f}"


def _promise(status: dict[str, Any]) -> str:
    claims = "; ".join(claims_in_words(status["guarantee"]))
    return f"Method {status['method']}: {claims}. Against {status['against']}." if claims else ""


def _line(line: bytes) -> str:
    record = orjson.loads(line)
    if record["type"] == "group":
        return f"group {record['group']}: {', '.join(str(value) for value, _ in record['candidates'])}"
    shown = ", ".join(f"{key} {value}" for key, value in record["qi"].items())
    offered = " / ".join(record.get("candidates", ()))
    return f"#{record['seq']}  {shown}  →  {offered or record.get('group') or record.get('sensitive')}"


def _chart(names: list[str], colours: list[str]) -> dict[str, Any]:
    return {
        "animation": False,
        "grid": {"left": 48, "right": 12, "top": 28, "bottom": 20},
        "legend": legend(*names) if len(names) > 1 else {"show": False},
        "xAxis": {
            "type": "category",
            "data": list(range(-_POINTS + 1, 1)),
            "axisLabel": {"show": False},
            "axisLine": {"lineStyle": {"color": GREY}},
        },
        "yAxis": axis(min=0),
        "tooltip": {"trigger": "axis"},
        "aria": {"enabled": True},
        "series": [
            {
                "name": n,
                "type": "line",
                "showSymbol": False,
                "data": [],
                "itemStyle": {"color": c},
                "lineStyle": {"width": 2},
            }
            for n, c in zip(names, colours, strict=True)
        ],
    }


def _plot(chart: ui.echart, columns: list[list[float]]) -> None:
    for series, values in zip(chart.options["series"], columns, strict=True):
        series["data"] = [None] * (_POINTS - len(values)) + [round(value, 4) for value in values]
    chart.update()
