"""Publish: the confirmation for one draft, after a check of the ledger."""

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
    """The ledger's counts for the persons of a table; 0 if the policy names no person column."""

    persons: int
    elsewhere: int
    has_person: bool


def ask_ledger(hub: Hub, draft: dict[str, Any]) -> LedgerAnswer:
    """Count the persons of a draft, and those who are already in publications that do not compose with it."""
    policy = hub.policy(draft["policy_hash"])
    population = Population(hub.store, "", policy, kind="table", method=policy.table.method)
    persons = np.unique(population.hash_table_persons(read_upload(hub.tables.blob(draft["table"]))))
    return LedgerAnswer(len(persons), population.count_elsewhere(persons), policy.person is not None)


@studio_page("/publish", "Data")
async def publish(context: PageContext, draft: str = "", table: str = "") -> None:
    """Draw the page."""
    known = await run_or_notify(in_thread(lambda: context.hub.drafts.get(draft))) if draft else None
    steps("Publish", known["table"] if known else table)
    if known is None or not known["figures"]:
        status_text("Choose a draft on the page Drafts or Compare first.")
        return
    _facts(known)
    if drafts.action_label(known) == "Create":
        begin_card(context, known)
        return
    await wait_for_browser()
    answer = await run_or_notify(in_thread(lambda: ask_ledger(context.hub, known)))
    if answer is not None:
        _ledger(context, known, answer)


def _facts(draft: dict[str, Any]) -> None:
    figures, create = draft["figures"], f"To be created: {KINDS[draft['kind']].partition(':')[0]}"
    values, publishes = drafts.measures(figures), drafts.action_label(draft) == "Publish"
    with card(f"{'To be published' if publishes else create}: {draft['name']}"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            for name in ("records", "suppressed", "risk", "guess", "count error"):
                if values[name] != "-":
                    figure(drafts.MEASURES[name], values[name])
        show_claims(figures["claims"], figures["against"])
        show_limits(figures["not_covered"])


def _ledger(context: PageContext, draft: dict[str, Any], answer: LedgerAnswer) -> None:
    with card("Ledger check"):
        status_text(_ledger_text(answer), bad=answer.elsewhere > 0)
        allow = ui.checkbox("Allow people who were already released from this store; the release records this")
        allow.set_visibility(answer.elsewhere > 0)
        final = final_checkbox()

        def work() -> dict[str, Any]:
            name = context.hub.tables.get(draft["table"])["name"]
            request = {"table": draft["table"], "policy_hash": draft["policy_hash"], "method": None}
            return context.hub.jobs.begin("table", name, request | {"allow_republication": allow.value})

        publish_button(lambda: in_thread(work), *([allow] if answer.elsewhere else []), final)
        hint_text(
            "Reticent computes the release again, with new random numbers if the method uses any. The verifier recomputes every claim. The "
            "publishing transaction checks the ledger again."
        )


def _ledger_text(answer: LedgerAnswer) -> str:
    if not answer.has_person:
        return "The policy names no person column, so the ledger cannot check who was published before."
    if not answer.elsewhere:
        return f"None of the {answer.persons:,} persons is in another publication of this store that does not compose with this one."
    return (
        f"{answer.elsewhere:,} of {answer.persons:,} persons are in another publication of this store. An attacker who has both "
        "publications may learn more than from each one."
    )
