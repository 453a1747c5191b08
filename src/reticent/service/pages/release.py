"""Release: the progress of a job, then the guarantee, the files and the actions of its release."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from fastapi import APIRouter
from nicegui import ui
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from reticent.release.wording import SHAPES
from reticent.service.jobs import OPEN_STATES
from reticent.service.pages.confirmation import confirm_dialog, show_claims, show_limits
from reticent.service.pages.layout import (
    PageContext,
    card,
    context_of,
    figure,
    format_time,
    hint_text,
    run_or_notify,
    status_text,
    studio_page,
)
from reticent.service.pages.safe_elements import data_table, set_label
from reticent.service.pages.sources import SOURCE_PATHS
from reticent.service.problems import to_service_error
from reticent.service.releases import TablePreview
from reticent.service.routes.audits import audit
from reticent.service.routes.common import Ident, in_thread
from reticent.service.routes.releases import send_release

router = APIRouter(include_in_schema=False)
_ROWS = 8
_WITHDRAW_TEXT = (
    "The studio and the API no longer offer this release. A withdrawal cannot be undone: recipients keep their copies, "
    "and the ledger still counts the persons as published."
)


@studio_page("/release", "History", everybody=True)
async def release(context: PageContext, job: str = "", id: str = "") -> None:  # noqa: A002 - the word in the address
    """Draw the page."""
    if job and context.is_custodian:
        await _job_card(context, job)
        return
    if not id:
        known = await in_thread(context.hub.releases.all)
        id = known[0]["id"] if known else ""  # noqa: A001
    document = await run_or_notify(in_thread(lambda: context.hub.releases.get(id))) if id else None
    if document is None:
        words = "There is no such release. Choose one on the page History." if id else "Nothing has been released yet."
        status_text(words, bad=bool(id))
        return
    _summary(document)
    _action_buttons(context, document)
    if not document["withdrawn"]:
        for table in await in_thread(lambda: context.hub.releases.preview(document["id"], _ROWS)):
            _preview_card(table)


async def _job_card(context: PageContext, ident: str) -> None:
    document = await run_or_notify(in_thread(lambda: context.hub.jobs.get(ident)))
    if document is None:
        return
    if document["state"] == "done":
        ui.navigate.to(f"/release?id={document['release']}")
    elif document["state"] in OPEN_STATES:
        _progress_card(context, ident)
    else:
        with card("Nothing was published"):
            error = document["error"] or {"message": "The job was cancelled.", "hint": ""}
            ui.label(error["message"]).props("role=alert").classes("text-negative")
            ui.label(error["hint"]).classes("r-muted")
            _next_steps(context, document)


def _next_steps(context: PageContext, document: dict[str, Any]) -> None:
    """Draw the next action after a job that published nothing."""

    async def retry() -> None:
        if await run_or_notify(in_thread(lambda: context.hub.jobs.retry(document["id"]))) is not None:
            ui.navigate.to(f"/release?job={document['id']}")

    if document["state"] == "parked":
        ui.button("Retry", on_click=retry).props("outline")
    elif document["kind"] in SOURCE_PATHS:
        ui.link(f"Back to {document['source']}", f"{SOURCE_PATHS[document['kind']]}{document['source']}")
    elif table := context.hub.jobs.documents.get(document["id"])["request"].get("table"):
        ui.link("Back to the drafts", f"/drafts?table={table}")


def _progress_card(context: PageContext, ident: str) -> None:
    with card("Job in progress"):
        words = ui.label("waiting").props("aria-live=polite")
        bar = set_label(ui.linear_progress(0, show_value=False), "progress").props("rounded size=12px")

        async def cancel() -> None:
            await run_or_notify(in_thread(lambda: context.hub.jobs.cancel(ident)))

        ui.button("Cancel", on_click=cancel).props("flat")

        async def refresh() -> None:
            state = await in_thread(lambda: context.hub.jobs.get(ident))
            words.set_text(state["stage"])
            bar.set_value(state["progress"])
            if state["state"] not in OPEN_STATES:
                timer.cancel()
                ui.navigate.to(f"/release?job={ident}")

        timer = ui.timer(0.3, refresh)


def _summary(document: dict[str, Any]) -> None:
    counts, guarantee = document["records"], document["guarantee"]
    with card(f"Release {document['number']} of {document['source']}"):
        if document["withdrawn"]:
            status_text(f"Withdrawn {format_time(document['withdrawn'])}: {_WITHDRAW_TEXT}", bad=True)
        ui.label(f"{format_time(document['created'])}: {SHAPES[document['shape']]}").classes("r-muted")
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-5 gap-4"):
            figure("records released", f"{counts['published']:,}")
            figure("suppressed", f"{counts['suppressed'] / max(1, counts['input']):.1%}")
            figure("withheld", f"{counts['withheld']:,}")
            figure("persons not published before", f"{document['added']:,}")
            figure("risk bound for the attacker below", f"{highest_risk(document):.2f}")
        holds = document["verification"]["holds"]
        words = "The verifier recomputed every claim before the publication: all claims hold."
        label = ui.label(words if holds else "The verifier refuted a claim.")
        label.classes("text-positive" if holds else "text-negative")
        show_claims(guarantee["claims"], guarantee["against"])
        show_limits(guarantee["not_covered"])


def _action_buttons(context: PageContext, document: dict[str, Any]) -> None:
    ident = document["id"]
    with ui.row().classes("w-full items-center gap-2"):
        if not document["withdrawn"]:
            for name, word in (("Download CSV", "csv"), ("Download Parquet", "parquet")):
                ui.button(name, icon="download", on_click=partial(download, context, ident, word)).props("outline")
            query = partial(ui.navigate.to, f"/explore?release={ident}")
            ui.button("Query", icon="query_stats", on_click=query).props("outline")
        if context.is_custodian:
            ui.button("Audit", icon="gavel", on_click=partial(run_audit, context, [ident])).props("outline")
            if not document["withdrawn"]:
                button = ui.button("Withdraw", icon="block", on_click=partial(confirm_withdrawal, context, document))
                button.props("outline color=negative")


def _preview_card(table: TablePreview) -> None:
    with card(f"{table.name}: first of {table.rows:,} rows"):
        data_table(table.columns, table.first).props('data-test="released"')
        distinct = zip(table.columns, table.distinct, strict=True)
        hint_text("; ".join(f"{column} {number:,} values" for column, number in distinct))


def confirm_withdrawal(context: PageContext, document: dict[str, Any]) -> None:
    """Ask for confirmation and explain what a withdrawal cannot undo."""

    async def go() -> None:
        await run_or_notify(in_thread(lambda: context.hub.withdraw(document["id"])))
        ui.navigate.to(f"/release?id={document['id']}")

    title = f"Withdraw release {document['number']} of {document['source']}?"
    confirm_dialog(title, _WITHDRAW_TEXT, "Withdraw release", go)


async def run_audit(context: PageContext, idents: list[str]) -> None:
    """Verify and attack releases, then open the page of the audit."""
    ui.notify("The audit recomputes every claim and attacks the release. Its page opens when it is done.")
    result = await run_or_notify(in_thread(lambda: audit(context.hub, idents, report=True)))
    if result is not None:
        ui.navigate.to(f"/audit?id={result['id']}")


async def download(context: PageContext, ident: str, file_format: str) -> None:
    """Download a release in the browser."""
    file = await run_or_notify(in_thread(lambda: context.hub.releases.pack(ident, file_format)))
    if file is not None:
        file.close()
        ui.download.from_url(f"/release/{ident}/{file_format}.zip", f"release-{ident}.zip")


def highest_risk(document: dict[str, Any]) -> float:
    """Return the risk bound: the highest probability with which the stated attacker finds a person or a value."""
    claims, metrics = document["guarantee"]["claims"], document["metrics"]
    if "max_risk" in metrics:
        return float(metrics["max_risk"])
    for name in ("k", "veil", "m-distinct", "m-distinct*", "m-invariance"):
        if name in claims:
            claim = claims[name]
            return 1 / float(claim["persons"] if isinstance(claim, dict) else claim)
    bounds = [1 / float(value) for value in claims.get("l", {}).values() if isinstance(value, int | float)]
    return max(bounds, default=1.0)


@router.get("/release/{ident}/{file_format}.zip")
async def download_zip(ident: Ident, file_format: Literal["csv", "parquet"], request: Request) -> Response:
    """Return the zip file of a release piece by piece from disk, without the socket of the page."""
    try:
        return await send_release(context_of(request).hub, ident, file_format)
    except Exception as error:  # noqa: BLE001 - it becomes the answer
        problem = to_service_error(error)
        return PlainTextResponse(f"{problem.message} {problem.hint}", problem.status)
