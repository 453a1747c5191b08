"""Ledger: the numbers of persons by publication. Audit log: who did what, and whether the log is intact."""

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
    """Return the name of a publication as on the page History."""
    kind, _, rest = publisher.partition(":")
    if not rest:
        kind, rest = publisher.partition("-")[0], sources.get(publisher, publisher)
    return f"{KIND_LABELS.get(kind, kind)} {rest}"


@studio_page("/ledger", "Ledger")
async def ledger(context: PageContext) -> None:
    """Draw the page."""
    ui.link("Audit log: who did what", "/audit-log")
    publications = await in_thread(lambda: summarize_publications(context.hub.store))
    if not publications:
        status_text("No persons have been published from this store.")
        return
    sources = {doc["publisher"]: doc["source"] for doc in await in_thread(context.hub.releases.all)}
    names = {name: _publication_name(name, sources) for name in publications}
    with card("Persons by publication"):
        status_text(
            "Reticent refuses to publish a person in two publications that do not compose: an attacker who has both may learn more "
            "than from each one."
        )
        elsewhere = [int(str(one["elsewhere"])) for one in publications.values()]
        here = [int(str(one["persons"])) - other for one, other in zip(publications.values(), elsewhere, strict=True)]
        options = {
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 20, "containLabel": True},
            "legend": legend("only in this publication", "also in others"),
            "xAxis": axis(),
            "yAxis": axis(type="category", data=[names[name] for name in publications]),
            "series": [
                chart_series("bar", "only in this publication", here, LINE, stack="persons"),
                chart_series("bar", "also in others", elsewhere, LINE_3, stack="persons"),
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
            for name, one in publications.items()
        ]
        data_table(("Publication", "Method", "Persons", "Also in others", "First published", "Last published"), rows)
        hint_text(
            "On the command line: reticent ledger STORE. Not covered: persons with different identifiers in two publications."
        )


@studio_page("/audit-log", "Ledger")
async def audit_log(context: PageContext) -> None:
    """Draw the page of the audit log."""
    log = context.hub.audit_log
    head = await in_thread(log.head)
    broken = await in_thread(log.first_broken_entry)
    entries = await in_thread(lambda: log.entries(max(-1, head["entries"] - _MAX_ENTRIES - 1), _MAX_ENTRIES))
    releases = await in_thread(context.hub.releases.all)
    names = {f"release:{doc['id']}": f"{doc['source']} {doc['number']}" for doc in releases}
    with card("Audit log"):
        words = f"{head['entries']:,} entries. Each contains the digest of the previous one: the log is intact."
        status_text(words if broken is None else f"Entry {broken} is missing or was changed.", bad=broken is not None)
        ui.label(f"Save this digest elsewhere to detect a rewritten log: {head['digest']}").classes("r-code")
        rows = []
        for e in reversed(entries):  # the id of a release is followed by its name
            target = f"{e['target']}, {names[e['target']]}" if e["target"] in names else e["target"]
            rows.append([e["name"], e["action"], target, format_time(e["time"]), e["role"], e["number"]])
        # The main columns come first: a phone does not display the others.
        data_table(("Who", "Action", "Target", "Time", "Role", "Entry"), rows)
