"""Drafts: the form for private drafts of a release, and the list of drafts; nothing is published."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from reticent.errors import PolicyError
from reticent.service.jobs import OPEN_STATES
from reticent.service.pages import drafts
from reticent.service.pages.layout import PageContext, card, hint_text, run_or_notify, status_text, steps, studio_page
from reticent.service.pages.plan import KINDS, Plan, load_plan
from reticent.service.pages.safe_elements import set_attributes, set_label
from reticent.service.routes.common import in_thread


@studio_page("/drafts", "Data")
async def drafts_page(context: PageContext, table: str = "") -> None:
    """Draw the page."""
    steps("Drafts", table)
    if (plan := await load_plan(context, table)) is None:
        return
    body = ui.column().classes("w-full gap-4")
    listed = ui.column().classes("w-full gap-4")
    with body:
        _form(context, plan, listed)
    await _draft_list(context, plan, listed)


def _form(context: PageContext, plan: Plan, listed: ui.column) -> None:
    with card(f"New drafts of {plan.table['name']} as {KINDS[plan.kind].partition(':')[0]}"):
        status_text("Drafts are private: this page publishes nothing.")
        options = drafts.METHODS[plan.kind]
        default = plan.settings.get(plan.kind, {}).get("method")
        default = default if default in options else next(iter(options))
        methods = ui.select(options, value=[default], label="Methods", multiple=True).classes("w-full")
        methods.props("use-chips")
        variants = _table_fields(plan) if plan.kind == "table" else _source_fields(plan)
        if plan.kind != "table" and not plan.settings.get("prior"):
            with ui.row().classes("w-full items-center gap-1"):
                status_text("The veil needs a prior: what an attacker knows before the release.")
                ui.link("Upload or count a prior on the page Roles", f"/roles?table={plan.table['id']}")

        async def go() -> None:
            button.disable()
            await run_or_notify(in_thread(lambda: drafts.begin(context.hub, plan, variants(methods.value))))
            button.enable()
            await _draft_list(context, plan, listed)

        button = ui.button("Make drafts", icon="science", on_click=go).props("size=lg")


VariantBuilder = Callable[[list[str]], list[tuple[str, dict[str, Any]]]]


def _source_fields(plan: Plan) -> VariantBuilder:
    """Draw the fields of a stream, an evolving table or a series."""
    privacy = plan.settings.get("privacy", {})
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        l = privacy.get("l", 4)
        ls = ui.input("l: candidates per value", value=str(l if isinstance(l, int) else 4))
        set_attributes(ls, hint="several numbers make several drafts: 4, 10")
        ks = ui.input("k: persons per group", value=str(privacy.get("k", 5)))
        set_attributes(ks, hint="only for castle")
        ks.set_visibility(plan.kind == "stream")
    return lambda methods: drafts.source_variants(plan, methods, _parse_integers(ks.value), _parse_integers(ls.value))


def _table_fields(plan: Plan) -> VariantBuilder:
    """Draw the fields of a table."""
    privacy = plan.settings.get("privacy", {})
    with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
        ks = ui.input("k: persons per group", value=str(privacy.get("k", 5)))
        l = ui.number("l: distinct values per group", value=_number(privacy.get("l", 1)), min=1, max=1000)
        t = ui.number("t: distance from the distribution", value=_number(privacy.get("t", 0)), min=0, max=1)
        t.props("step=0.05")
        suppression = ui.number(
            "suppressed at most, %", value=100 * _number(privacy.get("suppression", 0.02)), min=0, max=99
        )
        hints = {ks: "such as 3, 5, 10", l: "1 for no limit", t: "0 for no limit", suppression: "of the records"}
        for field, words in hints.items():
            set_attributes(field, hint=words)

    def variants(methods: list[str]) -> list[tuple[str, dict[str, Any]]]:
        own = _privacy(privacy, l.value, t.value, suppression.value)
        return drafts.table_variants(plan, methods, _parse_integers(ks.value), own)

    return variants


def _number(value: Any) -> float:
    """Return a setting as a number; 0 for a setting with several values, which stays as in the policy."""
    return value if isinstance(value, int | float) else 0


def _privacy(settings: dict[str, Any], l: float | None, t: float | None, suppression: float | None) -> dict[str, Any]:
    own: dict[str, Any] = {"suppression": round((suppression or 0) / 100, 4)}
    for name, value in (("l", int(l or 0)), ("t", round(t or 0, 3))):
        if isinstance(settings.get(name), dict):
            own[name] = settings[name]
        elif value > (1 if name == "l" else 0):
            own[name] = value
    return own


def _parse_integers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(";", ",").split(",") if part.strip()] or [1]
    except ValueError:
        raise PolicyError("k and l must be whole numbers.", hint="Write numbers such as 3, 5, 10.") from None


async def _draft_list(context: PageContext, plan: Plan, listed: ui.column) -> None:
    """Draw the drafts, and repeat until all jobs have ended."""
    known = await in_thread(lambda: drafts.of_table(context.hub, plan.table["id"]))
    if listed.is_deleted:
        return
    listed.clear()
    with listed:
        if known:
            with card("Drafts"):
                for draft in reversed(known):
                    _draft_row(context, plan, draft, listed)
                compare = partial(ui.navigate.to, f"/compare?table={plan.table['id']}")
                ui.button("Compare", icon="compare", on_click=compare).props("outline")
        if any(draft["job"]["state"] in OPEN_STATES for draft in known):
            ui.timer(0.7, lambda: _draft_list(context, plan, listed), once=True)


def _draft_row(context: PageContext, plan: Plan, draft: dict[str, Any], listed: ui.column) -> None:
    async def remove() -> None:
        await run_or_notify(in_thread(lambda: drafts.remove(context.hub, draft["id"])))
        await _draft_list(context, plan, listed)

    with ui.row().classes("w-full items-center gap-2").props('data-test="draft"'):
        with ui.column().classes("gap-0 grow"):
            ui.label(draft["name"]).classes("font-medium")
            _state(draft)
        if draft["figures"]:
            act = drafts.action_label(draft)
            publish = ui.button(f"{act}…", on_click=partial(ui.navigate.to, f"/publish?draft={draft['id']}"))
            set_label(publish, f"{act} {draft['name']} after confirmation").props("flat dense no-caps")
        button = ui.button(icon="delete", on_click=remove).props("flat dense round")
        set_label(button, f"Delete the draft {draft['name']}")


def _state(draft: dict[str, Any]) -> None:
    job = draft["job"]
    if draft["figures"]:
        hint_text(drafts.summary(draft["figures"]))
    elif job["state"] in OPEN_STATES:
        hint_text(job.get("stage", "waiting"))
        bar = set_label(ui.linear_progress(show_value=False), "in progress")
        bar.props("indeterminate rounded").classes("w-full")
    else:
        error = job["error"] or {"message": "The draft was cancelled.", "hint": ""}
        ui.label(f"{error['message']} {error['hint']}").classes("text-negative text-sm")
