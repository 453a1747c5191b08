"""Publish: one deliberate act for one draft, after the ledger was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nicegui import ui

from reticent.publication.population import Population
from reticent.service.hub import Hub
from reticent.service.pages import drafts
from reticent.service.pages.confirmation import final_checkbox, publish_button, show_claims, show_limits
from reticent.service.pages.layout import (
    PageContext,
    card,
    figure,
    hint_text,
    run_or_notify,
    status_text,
    steps,
    studio_page,
    wait_for_browser,
)
from reticent.service.pages.plan import KINDS
from reticent.service.pages.sources import begin_card
from reticent.service.routes.common import in_thread
from reticent.service.uploads import read_upload


@dataclass(frozen=True)
class LedgerAnswer:
    """What the ledger says of the persons of a table; nobody is counted where the policy names no person."""

    persons: int
    elsewhere: int
    has_person: bool


def ask_ledger(hub: Hub, draft: dict[str, Any]) -> LedgerAnswer:
    """How many persons a draft would publish, and how many stand in publications that do not compose with it."""
    policy = hub.policy(draft["policy_hash"])
    population = Population(hub.store, "", policy, kind="table", method=policy.table.method)
    persons = np.unique(population.hash_table_persons(read_upload(hub.tables.blob(draft["table"]))))
    return LedgerAnswer(len(persons), population.count_elsewhere(persons), policy.person is not None)


@studio_page("/publish", "Data")
async def publish(context: PageContext, draft: str = "", table: str = "") -> None:
    """The page."""
    known = await run_or_notify(in_thread(lambda: context.hub.drafts.get(draft))) if draft else None
    steps("Publish", known["table"] if known else table)
    if known is None or not known["figures"]:
        status_text("Choose a draft on the page Try or Compare first.")
        return
    _facts(known)
    if drafts.action_label(known) == "Begin":
        begin_card(context, known)
        return
    await wait_for_browser()
    standing = await run_or_notify(in_thread(lambda: ask_ledger(context.hub, known)))
    if standing is not None:
        _ledger(context, known, standing)


def _facts(draft: dict[str, Any]) -> None:
    figures, begun = draft["figures"], f"To be begun: {KINDS[draft['kind']].partition(':')[0]}"
    values, publishes = drafts.measures(figures), drafts.action_label(draft) == "Publish"
    with card(f"{'To be published' if publishes else begun}: {draft['name']}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            for name in ("records", "left out", "risk", "guess", "count_error"):
                if values[name] != "-":
                    figure(drafts.MEASURES[name], values[name])
        show_claims(figures["claims"], figures["against"], "Will hold")
        show_limits(figures["not_covered"])


def _ledger(context: PageContext, draft: dict[str, Any], standing: LedgerAnswer) -> None:
    with card("The ledger was asked"):
        status_text(_ledger_text(standing), bad=standing.elsewhere > 0)
        despite = ui.checkbox("Publish all the same; the release will say that its persons stand elsewhere too")
        despite.set_visibility(standing.elsewhere > 0)
        sure = final_checkbox()

        def work() -> dict[str, Any]:
            name = context.hub.tables.get(draft["table"])["name"]
            request = {"table": draft["table"], "policy_hash": draft["policy_hash"], "method": None}
            return context.hub.jobs.begin("table", name, request | {"allow_republication": despite.value})

        publish_button(lambda: in_thread(work), *([despite] if standing.elsewhere else []), sure)
        hint_text(
            "The release is computed anew, with fresh randomness where the method has some; the judge recomputes every claim, and the "
            "ledger is asked again in the transaction that publishes."
        )


def _ledger_text(standing: LedgerAnswer) -> str:
    if not standing.has_person:
        return "The policy names no person, so the ledger cannot tell who was published before."
    if not standing.elsewhere:
        return f"None of the {standing.persons:,} persons stands in another publication of this store that could tell on this one."
    return (
        f"{standing.elsewhere:,} of {standing.persons:,} persons stand in another publication of this store. Whoever lays both side by "
        "side may learn more than each alone tells."
    )
