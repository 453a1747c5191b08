"""Ledger: who has been shown where, in counts. Trail: who published, read, deleted or granted what, and whether the chain of entries is whole."""

from __future__ import annotations

from nicegui import ui

from reticent.publication.population import summarize_publications
from reticent.service.pages.charts import LINE, LINE_3, axis, chart_series, legend
from reticent.service.pages.history import KIND_LABELS
from reticent.service.pages.layout import PageContext, card, format_time, hint_text, status_text, studio_page
from reticent.service.pages.safe_elements import chart, data_table
from reticent.service.routes.common import in_thread

_MAX_ENTRIES = 200


def _publication_name(publisher: str, sources: dict[str, str]) -> str:
    """A publication as the page History calls it."""
    kind, _, rest = publisher.partition(":")
    if not rest:
        kind, rest = publisher.partition("-")[0], sources.get(publisher, publisher)
    return f"{KIND_LABELS.get(kind, kind)} {rest}"


@studio_page("/ledger", "Ledger")
async def ledger(context: PageContext) -> None:
    """The page."""
    ui.link("The audit trail: who did what", "/audit-log")
    seen = await in_thread(lambda: summarize_publications(context.hub.store))
    if not seen:
        status_text("Nobody has been published from this store.")
        return
    sources = {doc["publisher"]: doc["source"] for doc in await in_thread(context.hub.releases.all)}
    names = {name: _publication_name(name, sources) for name in seen}
    with card("Persons by publication"):
        status_text(
            "Somebody who stands in one publication is refused in every other that does not compose with it: two of them, laid "
            "side by side, may tell more than each alone."
        )
        elsewhere = [int(str(one["elsewhere"])) for one in seen.values()]
        here = [int(str(one["persons"])) - other for one, other in zip(seen.values(), elsewhere, strict=True)]
        options = {
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 20, "containLabel": True},
            "legend": legend("only here", "elsewhere too"),
            "xAxis": axis(),
            "yAxis": axis(type="category", data=[names[name] for name in seen]),
            "series": [
                chart_series("bar", "only here", here, LINE, stack="persons"),
                chart_series("bar", "elsewhere too", elsewhere, LINE_3, stack="persons"),
            ],
        }
        chart(options).classes("h-64")
        rows = [
            [
                names[name],
                one["method"],
                f"{one['persons']:,}",
                f"{one['elsewhere']:,}",
                format_time(str(one["first"])),
                format_time(str(one["last"])),
            ]
            for name, one in seen.items()
        ]
        data_table(("Publication", "Method", "Persons", "Elsewhere too", "First shown", "Last shown"), rows)
        hint_text(
            "The command line says the same: reticent ledger STORE. Not covered: persons whom two publications call by different names."
        )


@studio_page("/audit-log", "Ledger")
async def audit_log(context: PageContext) -> None:
    """The page of the audit trail."""
    known = context.hub.audit_log
    head = await in_thread(known.head)
    broken = await in_thread(known.first_broken_entry)
    entries = await in_thread(lambda: known.entries(max(-1, head["entries"] - _MAX_ENTRIES - 1), _MAX_ENTRIES))
    releases = await in_thread(context.hub.releases.all)
    names = {f"release:{doc['id']}": f"{doc['source']} {doc['number']}" for doc in releases}
    with card("Who did what"):
        words = (
            f"{head['entries']:,} entries, each of which quotes the digest of the one before it: the chain is whole."
        )
        status_text(words if broken is None else f"The chain is broken at entry {broken}.", bad=broken is not None)
        ui.label(f"Note this elsewhere, and nobody can rewrite the trail unseen: {head['digest']}").classes("r-code")
        rows = []
        for e in reversed(entries):  # the name of a release stands beside its id
            on = f"{e['target']}, {names[e['target']]}" if e["target"] in names else e["target"]
            rows.append([e["name"], e["action"], on, format_time(e["time"]), e["role"], e["number"]])
        # What matters most comes first: on a phone the rest is off screen.
        data_table(("Who", "Act", "On", "Time", "Role", "Entry"), rows)
