"""Publish: one deliberate act for one draft, after the ledger was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nicegui import ui
from starlette.requests import Request

from reticent.publication.population import Population
from reticent.service.hub import Hub
from reticent.service.pages import drafts
from reticent.service.pages.layout import PATIENCE, Visit, arrived, card, figure, held, page, steps, trying, visit_of
from reticent.service.pages.plan import KINDS
from reticent.service.pages.sources import begin
from reticent.service.routes.common import aside
from reticent.service.uploads import read_upload


@dataclass(frozen=True)
class Standing:
    """What the ledger says of the persons of a table; nobody is counted where the policy names no person."""

    persons: int
    elsewhere: int
    named: bool


def ask_ledger(hub: Hub, draft: dict[str, Any]) -> Standing:
    """How many persons a draft would publish, and how many stand in publications that do not compose with it."""
    policy = hub.policy(draft["policy_hash"])
    population = Population(hub.store, "", policy, kind="table", method=policy.table.method)
    persons = np.unique(population.of_table(read_upload(hub.tables.blob(draft["table"]))))
    return Standing(len(persons), population.elsewhere(persons), policy.person is not None)


@ui.page("/publish", response_timeout=PATIENCE)
async def publish(request: Request, draft: str = "", table: str = "") -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Data"):
        if not visit.custodian:
            return
        known = await trying(aside(lambda: visit.hub.drafts.get(draft))) if draft else None
        steps("Publish", known["table"] if known else table)
        if known is None or not known["figures"]:
            held("Choose a draft on the page Try or Compare first.")
            return
        _facts(known)
        if drafts.act(known) == "Begin":
            begin(visit, known)
            return
        await arrived()
        standing = await trying(aside(lambda: ask_ledger(visit.hub, known)))
        if standing is not None:
            _ledger(visit, known, standing)


def _facts(draft: dict[str, Any]) -> None:
    values = drafts.measures(draft["figures"])
    claims, against, left = drafts.promise(draft["figures"])
    words = (
        "To be published"
        if drafts.act(draft) == "Publish"
        else f"To be begun: {KINDS[draft['kind']].partition(':')[0]}"
    )
    with card(f"{words}: {draft['name']}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            for name in ("records", "left out", "risk", "guess", "asked"):
                if values[name] != "-":
                    figure(drafts.MEASURES[name], values[name])
        ui.label(f"Will hold: {claims}.")
        ui.label(f"Against {against}.").classes("r-muted")
        with ui.expansion("What it does not cover").classes("w-full"):
            for words in left:
                ui.label(words).classes("r-muted text-sm")


def _ledger(visit: Visit, draft: dict[str, Any], standing: Standing) -> None:
    with card("The ledger was asked"):
        held(_words(standing), bad=standing.elsewhere > 0)
        despite = ui.checkbox("Publish all the same; the release will say that its persons stand elsewhere too")
        despite.set_visibility(standing.elsewhere > 0)
        sure = ui.checkbox("This cannot be undone: whoever downloads it keeps it")

        async def go() -> None:
            def work() -> dict[str, Any]:
                table = visit.hub.tables.get(draft["table"])
                request = {
                    "table": draft["table"],
                    "policy_hash": draft["policy_hash"],
                    "method": None,
                    "despite": bool(despite.value),
                }
                return visit.hub.jobs.begin("table", table["name"], request)

            button.disable()
            job = await trying(aside(work))
            if job is not None:
                ui.navigate.to(f"/release?job={job['id']}")

        button = ui.button("Publish for good", icon="publish", on_click=go).props("size=lg")

        def ready() -> None:
            button.set_enabled(bool(sure.value) and (not standing.elsewhere or bool(despite.value)))

        sure.on_value_change(ready)
        despite.on_value_change(ready)
        ready()
        ui.label(
            "The release is computed anew, with fresh randomness where the method has some; the judge recomputes every claim, and the "
            "ledger is asked again in the transaction that publishes."
        ).classes("r-muted text-sm")


def _words(standing: Standing) -> str:
    if not standing.named:
        return "The policy names no person, so the ledger cannot tell who was published before."
    if not standing.elsewhere:
        return f"None of the {standing.persons:,} persons stands in another publication of this store that could tell on this one."
    return (
        f"{standing.elsewhere:,} of {standing.persons:,} persons stand in another publication of this store. Whoever lays both side by "
        "side may learn more than each alone tells."
    )
