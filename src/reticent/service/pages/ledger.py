"""Ledger: who has been shown where, in counts."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request

from reticent.publication.population import seen_of
from reticent.service.pages.history import WORDS
from reticent.service.pages.layout import LINE, LINE_3, PATIENCE, axis, card, held, legend, moment, page, visit_of
from reticent.service.pages.safe import chart, grid
from reticent.service.routes.common import aside


def _name(publisher: str, sources: dict[str, str]) -> str:
    """A publication as the page History calls it."""
    kind, _, rest = publisher.partition(":")
    if not rest:
        kind, rest = publisher.partition("-")[0], sources.get(publisher, publisher)
    return f"{WORDS.get(kind, kind)} {rest}"


@ui.page("/ledger", response_timeout=PATIENCE)
async def ledger(request: Request) -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Ledger"):
        if not visit.custodian:
            return
        ui.link("The audit trail: who did what", "/trail")
        seen = await aside(lambda: seen_of(visit.hub.store))
        if not seen:
            held("Nobody has been published from this store.")
            return
        sources = {doc["publisher"]: doc["source"] for doc in await aside(visit.hub.releases.all)}
        names = {name: _name(name, sources) for name in seen}
        with card("Persons by publication"):
            held(
                "Somebody who stands in one publication is refused in every other that does not compose with it: two of them, laid "
                "side by side, may tell more than each alone."
            )
            chart(
                {
                    "grid": {"left": 8, "right": 24, "top": 34, "bottom": 20, "containLabel": True},
                    "legend": legend("only here", "elsewhere too"),
                    "tooltip": {"trigger": "axis"},
                    "aria": {"enabled": True},
                    "xAxis": axis(),
                    "yAxis": axis(type="category", data=[names[name] for name in seen]),
                    "series": [
                        {
                            "name": "only here",
                            "type": "bar",
                            "stack": "persons",
                            "data": [int(str(one["persons"])) - int(str(one["elsewhere"])) for one in seen.values()],
                            "itemStyle": {"color": LINE},
                        },
                        {
                            "name": "elsewhere too",
                            "type": "bar",
                            "stack": "persons",
                            "data": [one["elsewhere"] for one in seen.values()],
                            "itemStyle": {"color": LINE_3},
                        },
                    ],
                }
            ).classes("w-full h-64")
            rows = [
                [
                    names[name],
                    one["method"],
                    f"{one['persons']:,}",
                    f"{one['elsewhere']:,}",
                    moment(str(one["first"])),
                    moment(str(one["last"])),
                ]
                for name, one in seen.items()
            ]
            with ui.element("div").classes("r-scroll").props("tabindex=0"):
                heads = ("Publication", "Method", "Persons", "Elsewhere too", "First shown", "Last shown")
                grid(heads, rows).classes("w-full")
            ui.label(
                "The command line says the same: reticent ledger STORE. Not covered: persons whom two publications call by different names."
            ).classes("r-muted text-sm")
