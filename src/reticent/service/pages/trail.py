"""Trail: who published, read, deleted or granted what, and whether the chain of entries is whole."""

from __future__ import annotations

from nicegui import ui

from reticent.service.pages.layout import Visit, card, held, moment, studio
from reticent.service.pages.safe import grid
from reticent.service.routes.common import aside

_SHOWN = 200


@studio("/trail", "Ledger")
async def trail(visit: Visit) -> None:
    """The page."""
    known = visit.hub.trail
    head = await aside(known.head)
    broken = await aside(known.broken)
    entries = await aside(lambda: known.entries(max(-1, head["entries"] - _SHOWN - 1), _SHOWN))
    releases = await aside(visit.hub.releases.all)
    names = {f"release:{doc['id']}": f"{doc['source']} {doc['number']}" for doc in releases}
    with card("Who did what"):
        words = (
            f"{head['entries']:,} entries, each of which quotes the digest of the one before it: the chain is whole."
        )
        held(words if broken is None else f"The chain is broken at entry {broken}.", bad=broken is not None)
        ui.label(f"Note this elsewhere, and nobody can rewrite the trail unseen: {head['digest']}").classes("r-code")
        rows = []
        for e in reversed(entries):  # the name of a release stands beside its id
            on = f"{e['on']}, {names[e['on']]}" if e["on"] in names else e["on"]
            rows.append([e["name"], e["act"], on, moment(e["time"]), e["role"], e["number"]])
        # What matters most comes first: on a phone the rest is off screen.
        grid(("Who", "Act", "On", "Time", "Role", "Entry"), rows)
