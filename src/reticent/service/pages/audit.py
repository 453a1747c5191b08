"""Audit: refuted claims first, then the risk and the attacks; passed checks are collapsed."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from reticent.service.pages.charts import GREY, LINE, LINE_3, axis, chart_series, legend, percent_axis, to_percent
from reticent.service.pages.layout import (
    PageContext,
    card,
    figure,
    format_time,
    hint_text,
    page_select,
    run_or_notify,
    status_text,
    studio_page,
)
from reticent.service.pages.safe_elements import chart, data_table, set_label
from reticent.service.routes.common import in_thread


@studio_page("/audit", "History")
async def audit(context: PageContext, id: str = "") -> None:  # noqa: A002 - the word in the address
    """Draw the page."""
    known = await in_thread(context.hub.audits.all)
    if not known:
        status_text("There are no audits yet. Choose a release on the page History.")
        return
    here = next((one for one in known if not id or one["id"] == id), None)
    if here is None:
        status_text("There is no such audit. Choose a release on the page History.", bad=True)
        return
    if len(known) > 1:
        outcomes = {True: "all claims hold", False: "some claims are refuted"}
        audits = {one["id"]: f"{format_time(one['created'])}: {outcomes[one['holds']]}" for one in known[:50]}
        page_select(audits, here["id"], "Audit", "/audit?id=")
    names = {
        doc["id"]: f"{doc['source']}, release {doc['number']}" for doc in await in_thread(context.hub.releases.all)
    }
    _findings_card(context, here, names)
    _risk(here)
    _attacks(here)
    _passed_checks(here)


def _findings_card(context: PageContext, here: dict[str, Any], names: dict[str, str]) -> None:
    refuted = [finding for finding in here["findings"] if not finding["holds"]]
    broken = [attack for attack in here.get("more", {}).get("attacks", ()) if attack.get("refuted")]
    with card("Findings"):
        if here["holds"]:
            ui.label("All claims hold.").classes("text-lg text-positive").props("role=status")
        else:
            ui.label("Some claims are refuted.").classes("text-lg text-negative").props("role=alert")
        for finding in refuted:
            _finding_row(finding)
        for attack in broken:
            status_text(f"The attack {attack['attack']} was correct more often than the claim allows.", bad=True)
        for note in here["notes"]:
            hint_text(note)
        if here["unchecked"]:
            hint_text(f"Not checked: {'; '.join(here['unchecked'])}.")
        with ui.row().classes("gap-2"):
            for ident in here["releases"]:
                ui.link(names.get(ident, ident), f"/release?id={ident}")
        if here["report"]:

            async def report() -> None:
                data = await run_or_notify(in_thread(lambda: context.hub.audits.blob(here["id"])))
                if data is not None:
                    ui.download(data, f"audit-{here['id']}.html", "text/html")

            ui.button("Report to sign", icon="description", on_click=report).props("outline")


def _finding_row(finding: dict[str, Any]) -> None:
    mark, color = ("check_circle", "positive") if finding["holds"] else ("cancel", "negative")
    with ui.row().classes("no-wrap items-start"):
        set_label(ui.icon(mark, color=color), "holds" if finding["holds"] else "refuted")
        measured = "" if finding["measured"] is None else f": measured {finding['measured']:g}"
        needed = finding.get("required")
        required = f", required {needed:g}" if isinstance(needed, int | float) else ""
        ui.label(f"{finding['where']} {finding['claim']}{measured}{required}".strip())


def _risk(here: dict[str, Any]) -> None:
    """Draw the re-identification risk and the contribution of each column."""
    risk = here.get("more", {}).get("risk")
    if not risk:
        return
    with card("Re-identification risk"):
        ui.label(
            "The attacker knows all quasi-identifiers of a person and knows that the person is in the release."
        ).classes("r-muted")
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            figure("highest", f"{risk['prosecutor']['highest']:.2f}")
            figure("mean", f"{risk['prosecutor']['mean']:.3f}")
            figure(f"records above a risk of {risk['threshold']:.2f}", f"{risk['prosecutor']['above']:.1%}")
            figure("unique records", f"{risk['uniqueness']:.1%}")
        if risk["contributions"]:
            with ui.expansion("Risk by column").classes("w-full"):
                rows = [
                    [
                        one["column"],
                        f"{one['distinct']:,}",
                        *(f"{one[part]:.3f}" for part in ("alone", "without", "share")),
                    ]
                    for one in risk["contributions"]
                ]
                data_table(
                    (
                        "Column",
                        "Values",
                        "Mean risk, only this column",
                        "Mean risk, without this column",
                        "Share of the risk",
                    ),
                    rows,
                )


def _attacks(here: dict[str, Any]) -> None:
    attacks = here.get("more", {}).get("attacks", ())
    if not attacks:
        return
    with card("Attack results"):
        chart(_bars(attacks)).classes("h-80")
        for attack in attacks:
            claim = attack["claim"]
            bound = "the release states no risk bound" if claim is None else f"the risk bound is {claim:.1%}"
            with ui.column().classes("w-full gap-0"):
                ui.label(f"{attack['attack']}: {attack['accuracy']:.1%}").classes("font-medium")
                ui.label(attack["question"])
                hint_text(f"{attack['tried']:,} persons attacked; {bound}.")
                for note in attack.get("notes", ()):
                    hint_text(note)


def _bars(attacks: Any) -> dict[str, Any]:
    names = [attack["attack"] for attack in attacks][::-1]
    correct = [to_percent(attack["accuracy"]) for attack in attacks][::-1]
    bounds = [None if attack["claim"] is None else to_percent(attack["claim"]) for attack in attacks][::-1]
    return {
        "grid": {"left": 8, "right": 24, "top": 52, "bottom": 20, "containLabel": True},
        "legend": legend("correct guesses", "risk bound of the release"),
        "xAxis": percent_axis(min=0, max=100),
        "yAxis": axis(type="category", data=names, axisLabel={"color": GREY, "width": 110, "overflow": "truncate"}),
        "series": [
            chart_series("bar", "correct guesses", correct, LINE),
            chart_series("scatter", "risk bound of the release", bounds, LINE_3, symbol="rect", symbolSize=[4, 16]),
        ],
    }


def _passed_checks(here: dict[str, Any]) -> None:
    passed = [finding for finding in here["findings"] if finding["holds"]]
    with ui.expansion(f"{len(passed)} passed checks").classes("w-full r-card"):
        for finding in passed:
            _finding_row(finding)
