"""Publish: one deliberate act for one draft, after the ledger was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nicegui import ui

from reticent.publication.population import Population
from reticent.service.hub import Hub
from reticent.service.pages import drafts
from reticent.service.pages.deeds import for_good, promised, sure_first, uncovered
from reticent.service.pages.layout import PageContext, arrived, card, figure, status_text, small, steps, studio, trying
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
    persons = np.unique(population.hash_table_persons(read_upload(hub.tables.blob(draft["table"]))))
    return Standing(len(persons), population.count_elsewhere(persons), policy.person is not None)


@studio("/publish", "Data")
async def publish(context: PageContext, draft: str = "", table: str = "") -> None:
    """The page."""
    known = await trying(aside(lambda: context.hub.drafts.get(draft))) if draft else None
    steps("Publish", known["table"] if known else table)
    if known is None or not known["figures"]:
        status_text("Choose a draft on the page Try or Compare first.")
        return
    _facts(known)
    if drafts.act(known) == "Begin":
        begin(context, known)
        return
    await arrived()
    standing = await trying(aside(lambda: ask_ledger(context.hub, known)))
    if standing is not None:
        _ledger(context, known, standing)


def _facts(draft: dict[str, Any]) -> None:
    figures, begun = draft["figures"], f"To be begun: {KINDS[draft['kind']].partition(':')[0]}"
    values, publishes = drafts.measures(figures), drafts.act(draft) == "Publish"
    with card(f"{'To be published' if publishes else begun}: {draft['name']}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            for name in ("records", "left out", "risk", "guess", "asked"):
                if values[name] != "-":
                    figure(drafts.MEASURES[name], values[name])
        promised(figures["claims"], figures["against"], "Will hold")
        uncovered(figures["not_covered"])


def _ledger(context: PageContext, draft: dict[str, Any], standing: Standing) -> None:
    with card("The ledger was asked"):
        status_text(_words(standing), bad=standing.elsewhere > 0)
        despite = ui.checkbox("Publish all the same; the release will say that its persons stand elsewhere too")
        despite.set_visibility(standing.elsewhere > 0)
        sure = sure_first()

        def work() -> dict[str, Any]:
            name = context.hub.tables.get(draft["table"])["name"]
            request = {"table": draft["table"], "policy_hash": draft["policy_hash"], "method": None}
            return context.hub.jobs.begin("table", name, request | {"despite": despite.value})

        for_good(lambda: aside(work), *([despite] if standing.elsewhere else []), sure)
        small(
            "The release is computed anew, with fresh randomness where the method has some; the judge recomputes every claim, and the "
            "ledger is asked again in the transaction that publishes."
        )


def _words(standing: Standing) -> str:
    if not standing.named:
        return "The policy names no person, so the ledger cannot tell who was published before."
    if not standing.elsewhere:
        return f"None of the {standing.persons:,} persons stands in another publication of this store that could tell on this one."
    return (
        f"{standing.elsewhere:,} of {standing.persons:,} persons stand in another publication of this store. Whoever lays both side by "
        "side may learn more than each alone tells."
    )
