"""Release: a job with its progress; then before and after, risk and utility, and what else could be done."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from nicegui import ui
from starlette.requests import Request

from reticent.audit.risk.assessment import initial_risk
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.service.documents import OWNER
from reticent.service.pages.alternatives import Neighbour, Point, frontier, neighbours
from reticent.service.pages.history import download, risk
from reticent.service.pages.layout import (
    LINE,
    LINE_2,
    LINE_3,
    Visit,
    axis,
    card,
    figure,
    legend,
    page,
    trying,
    visit_of,
)
from reticent.service.routes.common import aside
from reticent.service.uploads import read_upload

_ROWS = 8


@ui.page("/release")
async def release(request: Request, job: str = "") -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Release"):
        if not visit.custodian:
            return
        jobs = [doc for doc in await aside(visit.hub.jobs.all) if doc["kind"] == "table"]
        if not job and jobs:
            job = jobs[0]["id"]
        if not job:
            ui.label("Nothing has been released yet. Begin on the page Prepare.")
            return
        if len(jobs) > 1:
            known = {
                doc["id"]: f"{doc['source']}, {doc['created'][:16].replace('T', ' ')}: {doc['state']}" for doc in jobs
            }
            ui.select(
                known, value=job, label="Job", on_change=lambda e: ui.navigate.to(f"/release?job={e.value}")
            ).classes("w-full")
        await _job(visit, job)


async def _job(visit: Visit, ident: str) -> None:
    document = await trying(aside(lambda: visit.hub.jobs.get(ident)))
    if document is None:
        return
    body = ui.column().classes("w-full gap-4")
    if document["state"] in ("queued", "running"):
        with body:
            _progress(visit, ident)
        return
    with body:
        if document["state"] == "done":
            await _done(visit, ident, document["release"])
        else:
            with card("Nothing was published"):
                error = document["error"] or {"message": "The job was cancelled.", "hint": ""}
                ui.label(error["message"]).props("role=alert").classes("text-negative")
                ui.label(error["hint"]).classes("r-muted")


def _progress(visit: Visit, ident: str) -> None:
    with card("At work"):
        words = ui.label("waiting").props("aria-live=polite")
        bar = ui.linear_progress(0, show_value=False).props("rounded size=12px")

        async def cancel() -> None:
            await trying(aside(lambda: visit.hub.jobs.cancel(ident)))

        ui.button("Cancel", on_click=cancel).props("flat")

        def look() -> None:
            state = visit.hub.jobs.get(ident)
            words.set_text(state["stage"])
            bar.set_value(state["progress"])
            if state["state"] not in ("queued", "running"):
                timer.cancel()
                ui.navigate.to(f"/release?job={ident}")

        timer = ui.timer(0.3, look)


async def _done(visit: Visit, job: str, ident: str) -> None:
    document = await aside(lambda: visit.hub.releases.get(ident))
    release = await aside(lambda: visit.hub.releases.load(ident))
    policy = await aside(lambda: visit.hub.policy(document["policy_hash"]))
    request = visit.hub.jobs.documents.get(job)["request"]
    original = await trying(aside(lambda: _original(visit, request["table"])))
    _summary(visit, document, policy, original)
    _before_after(document, policy, original, release.tables)
    if original is not None and document["shape"] == "generalised":
        _neighbourhood(visit, request, policy, original, document)
    if original is not None:
        _picture(policy, original, document)


def _original(visit: Visit, table: str) -> pa.Table | None:
    known = {doc["id"] for doc in visit.hub.tables.all()}
    return read_upload(visit.hub.tables.blob(table)) if table in known else None


def _summary(visit: Visit, document: dict[str, Any], policy: Policy, original: pa.Table | None) -> None:
    counts = document["counts"]
    with card(f"Released: {document['source']}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            figure("records released", f"{counts['published']:,}")
            share = counts["suppressed"] / max(1, counts["rows_in"])
            figure("left out", f"{share:.1%}")
            before = initial_risk(original, policy) if original is not None and policy.quasi else None
            figure("highest risk before", f"{before.highest:.2f}" if before else "-")
            figure("highest risk now", f"{risk(document):.2f}")
            loss = document["metrics"].get("loss")
            figure("information lost", f"{loss:.0%}" if loss is not None else "none in the columns")
        holds = document["verdict"]["holds"]
        ui.label(
            "The judge has recomputed every claim from the release alone: they hold."
            if holds
            else "The judge refuted a claim."
        ).classes("text-positive" if holds else "text-negative")
        ui.label(f"Holds against {document['guarantee']['against']}.").classes("r-muted text-sm")
        if document["guarantee"]["not_covered"]:
            ui.label(f"Not covered: {'; '.join(document['guarantee']['not_covered'])}.").classes("r-muted text-sm")
        with ui.row():
            ui.button("Download CSV", icon="download", on_click=partial(download, visit, document["id"], "csv"))
            ui.button(
                "Download Parquet", icon="download", on_click=partial(download, visit, document["id"], "parquet")
            ).props("outline")


def _before_after(document: dict[str, Any], policy: Policy, original: pa.Table | None, tables: Any) -> None:
    name = "data" if "data" in tables else next(iter(tables))
    shown = tables[name]
    levels = document["explain"].get("attributes", {})
    rows = []
    for column in policy.columns:
        role = policy.columns[column].role
        before = f"{len(original.column(column).unique()):,}" if original is not None else "-"
        after = f"{len(shown.column(column).unique()):,}" if column in shown.column_names else "not in this table"
        at = levels.get(column, {})
        level = f"{at['level']} of {at['height']}" if at.get("level") is not None else "-"
        rows.append({"column": column, "role": role, "before": before, "after": after, "level": level})
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        with card("Before and after, column by column"), ui.element("div").classes("r-scroll"):
            ui.table(
                columns=[
                    {"name": "column", "label": "Column", "field": "column", "align": "left"},
                    {"name": "role", "label": "Role", "field": "role", "align": "left"},
                    {"name": "before", "label": "Different values before", "field": "before"},
                    {"name": "after", "label": "and after", "field": "after"},
                    {"name": "level", "label": "Level", "field": "level"},
                ],
                rows=rows,
                row_key="column",
            ).props("dense flat hide-bottom").classes("w-full")
        with card("What leaves the house: first rows"), ui.element("div").classes("r-scroll"):
            names = shown.column_names
            ui.table(
                columns=[{"name": n, "label": n, "field": n, "align": "left"} for n in names],
                rows=[
                    {"_": i, **{n: str(v) for n, v in row.items()}}
                    for i, row in enumerate(shown.slice(0, _ROWS).to_pylist())
                ],
                row_key="_",
            ).props('dense flat hide-bottom data-test="released"').classes("w-full")


def _neighbourhood(
    visit: Visit, request: dict[str, Any], policy: Policy, original: pa.Table, document: dict[str, Any]
) -> None:
    levels = {
        name: at["level"]
        for name, at in document["explain"].get("attributes", {}).items()
        if at.get("level") is not None
    }
    if set(levels) != set(policy.quasi):
        return
    with card("Around this release: one level finer or coarser"):
        ui.label(
            "A finer neighbour that leaves too many records in small groups is why the search stopped here. "
            "'Favour' runs the search again with that column four times as important."
        ).classes("r-muted text-sm")
        for one in neighbours(original, policy, levels):
            _neighbour(visit, request, policy, one)


def _neighbour(visit: Visit, request: dict[str, Any], policy: Policy, one: Neighbour) -> None:
    async def favour() -> None:
        def work() -> dict[str, Any]:
            data = visit.hub.store.get(OWNER, "bundle", request["policy_hash"])
            bundle = Bundle.from_bytes(data or b"{}")
            settings = dict(bundle.settings.get("table", {}))
            settings["weights"] = dict.fromkeys(policy.quasi, 1.0) | settings.get("weights", {}) | {one.column: 4.0}
            changed = visit.hub.accept(Bundle(dict(bundle.settings) | {"table": settings}, bundle.files))
            table = visit.hub.tables.get(request["table"])
            return visit.hub.jobs.begin("table", table["name"], request | {"policy_hash": changed.hash})

        job = await trying(aside(work))
        if job is not None:
            ui.navigate.to(f"/release?job={job['id']}")

    with ui.row().classes("w-full items-center gap-3 no-wrap"):
        ui.icon("check_circle" if one.fits else "block", color="positive" if one.fits else "negative").props(
            f'aria-label="{"would hold" if one.fits else "would not hold"}"'
        )
        ui.label(one.words).classes("grow")
        if one.finer:
            ui.button(f"Favour {one.column}", on_click=favour).props("flat dense no-caps")


def _picture(policy: Policy, original: pa.Table, document: dict[str, Any]) -> None:
    frame = card("Risk and utility")
    with frame:
        ui.label("The same table at other strengths: what risk remains, and what it costs.").classes("r-muted text-sm")
        button = ui.button("Draw", icon="scatter_plot").props("outline")

        async def draw() -> None:
            button.disable()
            points = await trying(aside(lambda: frontier(original, policy, document["method"])))
            button.set_visibility(False)
            if points:
                with frame:
                    ui.echart(_scatter(points, document)).classes("w-full h-64")

        button.on_click(draw)


def _scatter(points: list[Point], document: dict[str, Any]) -> dict[str, Any]:
    here = [round(risk(document), 3), round(document["metrics"].get("loss", 0.0), 3)]
    return {
        "grid": {"left": 56, "right": 20, "top": 30, "bottom": 44},
        "tooltip": {"trigger": "item"},
        "aria": {"enabled": True},
        "legend": legend("other strengths", "this release"),
        "xAxis": axis(name="highest risk", nameLocation="middle", nameGap=26, min=0),
        "yAxis": axis(name="loss", min=0),
        "series": [
            {
                "name": "other strengths",
                "type": "line",
                "data": [{"value": [round(p.risk, 3), round(p.loss, 3)], "name": p.name} for p in points],
                "label": {"show": True, "formatter": "{b}", "position": "top", "color": LINE_2},
                "itemStyle": {"color": LINE},
                "symbolSize": 9,
            },
            {
                "name": "this release",
                "type": "scatter",
                "data": [here],
                "symbolSize": 18,
                "itemStyle": {"color": LINE_3},
            },
        ],
    }
