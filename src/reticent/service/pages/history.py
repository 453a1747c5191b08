"""History: what was released over time, the risk of each release, and audits."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Any

from nicegui import ui
from starlette.requests import Request

from reticent.service.audits import audit
from reticent.service.pages.layout import LINE, LINE_3, Visit, axis, card, legend, page, trying, visit_of
from reticent.service.routes.common import aside

_WORDS = {"table": "Table", "evolving": "Evolving table", "series": "Series"}


@ui.page("/history")
async def history(request: Request) -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "History"):
        documents = await aside(visit.hub.releases.all)
        if not documents:
            ui.label("Nothing has been released yet.")

        def of(doc: dict[str, Any]) -> tuple[str, str]:
            return doc["kind"], doc["source"]

        for (kind, source), members in groupby(sorted(documents, key=of), key=of):
            ordered = sorted(members, key=lambda doc: (int(doc["number"]), str(doc["created"])))
            with card(f"{_WORDS.get(kind, kind)} {source}"):
                _source(visit, ordered)


def _source(visit: Visit, releases: list[dict[str, Any]]) -> None:
    if len(releases) > 1 and releases[0]["kind"] != "table":
        ui.echart(_chart(releases)).classes("w-full h-48")
    for release in reversed(releases):
        _one(visit, releases, release)


def _one(visit: Visit, releases: list[dict[str, Any]], release: dict[str, Any]) -> None:
    counts, holds = release["counts"], release["verdict"]["holds"]
    with ui.row().classes("w-full items-center gap-3"):
        with ui.column().classes("gap-0 grow"):
            ui.label(f"Release {release['number']}, {release['created'][:16].replace('T', ' ')}, {release['method']}")
            ui.label(
                f"{counts['published']:,} of {counts['rows_in']:,} records; {counts['held']:,} held, "
                f"{counts['suppressed']:,} left out; highest risk {risk(release):.2f}"
            ).classes("r-muted text-sm")
        ui.badge("verified" if holds else "refuted", color="positive" if holds else "negative").props("outline")
        if visit.custodian:
            upto = [doc["id"] for doc in releases if doc["number"] <= release["number"]]
            if release["kind"] == "table":
                upto = [release["id"]]
            ui.button("Audit", icon="gavel", on_click=partial(_audit, visit, upto)).props("flat dense no-caps")
        ui.button("CSV", icon="download", on_click=partial(download, visit, release["id"], "csv")).props(
            f'flat dense no-caps aria-label="Download release {release["number"]} as CSV"'
        )
        ui.button("Parquet", icon="download", on_click=partial(download, visit, release["id"], "parquet")).props(
            "flat dense no-caps"
        )


async def _audit(visit: Visit, idents: list[str]) -> None:
    verdict = await trying(aside(lambda: audit(visit.hub, idents)))
    if verdict is None:
        return
    with ui.dialog() as dialog, ui.card().classes("w-full"):
        ui.label("All claims hold." if verdict["holds"] else "Some claims are refuted.").classes("text-lg").props(
            "role=status"
        )
        for finding in verdict["findings"]:
            mark, colour = ("check_circle", "positive") if finding["holds"] else ("cancel", "negative")
            with ui.row().classes("no-wrap items-start"):
                ui.icon(mark, color=colour).props(f'aria-label="{"holds" if finding["holds"] else "refuted"}"')
                measured = "" if finding["measured"] is None else f": {finding['measured']:g}"
                ui.label(f"{finding['where']} {finding['claim']}{measured}".strip())
        for note in verdict["notes"]:
            ui.label(note).classes("r-muted text-sm")
        with ui.row():
            ui.button("Close", on_click=dialog.close)
            ui.button("Report", icon="description", on_click=partial(_report, visit, idents)).props("outline")
    dialog.open()


async def _report(visit: Visit, idents: list[str]) -> None:
    ui.notify("Measuring and attacking the releases; the report follows.")
    verdict = await trying(aside(lambda: audit(visit.hub, idents, report=True)))
    if verdict is not None:
        ui.download(visit.hub.audits.blob(verdict["id"]), f"audit-{verdict['id']}.html", "text/html")


async def download(visit: Visit, ident: str, file_format: str) -> None:
    """Hands a release to the browser."""
    data = await trying(aside(lambda: visit.hub.releases.archive(ident, file_format)))
    if data is not None:
        ui.download(data, f"release-{ident}.zip", "application/zip")


def risk(release: dict[str, Any]) -> float:
    """The highest chance to learn a value, or to find a person, that the release claims to leave."""
    claims, metrics = release["guarantee"]["claims"], release["metrics"]
    if "max_risk" in metrics:
        return float(metrics["max_risk"])
    if "k" in claims:
        k = claims["k"]
        return 1 / float(k["persons"] if isinstance(k, dict) else k)
    bounds = [1 / float(value) for value in claims.get("l", {}).values() if isinstance(value, int | float)]
    return max(bounds, default=1.0)


def _chart(releases: list[dict[str, Any]]) -> dict[str, Any]:
    names = [f"release {doc['number']}" for doc in releases]
    return {
        "grid": {"left": 52, "right": 52, "top": 30, "bottom": 24},
        "legend": legend("records", "highest risk"),
        "tooltip": {"trigger": "axis"},
        "aria": {"enabled": True},
        "xAxis": axis(type="category", data=names, splitLine={"show": False}),
        "yAxis": [axis(), axis(min=0, max=1, splitLine={"show": False})],
        "series": [
            {
                "name": "records",
                "type": "bar",
                "barMaxWidth": 48,
                "data": [doc["counts"]["published"] for doc in releases],
                "itemStyle": {"color": LINE},
            },
            {
                "name": "highest risk",
                "type": "line",
                "yAxisIndex": 1,
                "data": [round(risk(doc), 3) for doc in releases],
                "itemStyle": {"color": LINE_3},
            },
        ],
    }
