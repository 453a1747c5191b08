"""Trail: who published, read, deleted or granted what, and whether the chain of entries is whole."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request

from reticent.service.pages.layout import PATIENCE, card, held, moment, page, visit_of
from reticent.service.pages.safe import grid
from reticent.service.routes.common import aside

_SHOWN = 200


@ui.page("/trail", response_timeout=PATIENCE)
async def trail(request: Request) -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Ledger"):
        if not visit.custodian:
            return
        known = visit.hub.trail
        head = await aside(known.head)
        broken = await aside(known.broken)
        entries = await aside(lambda: known.entries(max(-1, head["entries"] - _SHOWN - 1), _SHOWN))
        releases = await aside(visit.hub.releases.all)
        names = {f"release:{doc['id']}": f"{doc['source']} {doc['number']}" for doc in releases}
        with card("Who did what"):
            words = f"{head['entries']:,} entries, each of which quotes the digest of the one before it: the chain is whole."
            held(words if broken is None else f"The chain is broken at entry {broken}.", bad=broken is not None)
            ui.label(f"Note this elsewhere, and nobody can rewrite the trail unseen: {head['digest']}").classes(
                "r-code"
            )
            with ui.element("div").classes("r-scroll").props("tabindex=0"):
                rows = [
                    [e["name"], e["act"], _on(e["on"], names), moment(e["time"]), e["role"], e["number"]]
                    for e in reversed(entries)
                ]
                # What matters most comes first: on a phone the rest is off screen.
                grid(("Who", "Act", "On", "Time", "Role", "Entry"), rows).classes("w-full")


def _on(what: str, names: dict[str, str]) -> str:
    """What an entry is about, with the name of a release beside its id."""
    name = names.get(what)
    return f"{what}, {name}" if name else what
