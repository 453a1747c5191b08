"""Try: private drafts of a release, several at once; tuning publishes nothing."""

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
    """The page."""
    steps("Try", table)
    if (plan := await load_plan(context, table)) is None:
        return
    body = ui.column().classes("w-full gap-4")
    listed = ui.column().classes("w-full gap-4")
    with body:
        _form(context, plan, listed)
    await _draft_list(context, plan, listed)


def _form(context: PageContext, plan: Plan, listed: ui.column) -> None:
    with card(f"Try {plan.table['name']} as {KINDS[plan.kind].partition(':')[0]}"):
        status_text("Drafts are private: nothing is published here, whatever you try.")
        known = drafts.METHODS[plan.kind]
        usual = plan.settings.get(plan.kind, {}).get("method")
        usual = usual if usual in known else next(iter(known))
        methods = ui.select(known, value=[usual], label="Methods", multiple=True).classes("w-full")
        methods.props("use-chips")
        ask = _table_fields(plan) if plan.kind == "table" else _source_fields(plan)
        if plan.kind != "table" and not plan.settings.get("prior"):
            with ui.row().classes("w-full items-center gap-1"):
                status_text("The veil needs a prior, what readers know already.")
                ui.link("Send or count one on the page Roles", f"/roles?table={plan.table['id']}")

        async def go() -> None:
            button.disable()
            await run_or_notify(in_thread(lambda: drafts.begin(context.hub, plan, ask(methods.value))))
            button.enable()
            await _draft_list(context, plan, listed)

        button = ui.button("Try", icon="science", on_click=go).props("size=lg")


VariantBuilder = Callable[[list[str]], list[tuple[str, dict[str, Any]]]]


def _source_fields(plan: Plan) -> VariantBuilder:
    """The fields of a stream, an evolving table or a series."""
    privacy = plan.settings.get("privacy", {})
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        l = privacy.get("l", 4)
        ls = ui.input("l: values among which each stands", value=str(l if isinstance(l, int) else 4))
        set_attributes(ls, hint="several give several drafts: 4, 10")
        ks = ui.input("k: persons alike", value=str(privacy.get("k", 5)))
        set_attributes(ks, hint="for castle alone")
        ks.set_visibility(plan.kind == "stream")
    return lambda methods: drafts.source_variants(plan, methods, _parse_integers(ks.value), _parse_integers(ls.value))


def _table_fields(plan: Plan) -> VariantBuilder:
    """The fields of a table."""
    privacy = plan.settings.get("privacy", {})
    with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
        ks = ui.input("k: persons alike", value=str(privacy.get("k", 5)))
        l = ui.number("l: different values", value=_number(privacy.get("l", 1)), min=1, max=1000)
        t = ui.number("t: distance of values", value=_number(privacy.get("t", 0)), min=0, max=1)
        t.props("step=0.05")
        out = ui.number("left out at most, %", value=100 * _number(privacy.get("suppression", 0.02)), min=0, max=99)
        hints = {ks: "such as 3, 5, 10", l: "1 for none", t: "0 for none", out: "of the records"}
        for field, words in hints.items():
            set_attributes(field, hint=words)

    def ask(methods: list[str]) -> list[tuple[str, dict[str, Any]]]:
        own = _privacy(privacy, l.value, t.value, out.value)
        return drafts.table_variants(plan, methods, _parse_integers(ks.value), own)

    return ask


def _number(value: Any) -> float:
    """A setting as a number; a finer form of it stays as the policy has it."""
    return value if isinstance(value, int | float) else 0


def _privacy(usual: dict[str, Any], l: float | None, t: float | None, out: float | None) -> dict[str, Any]:
    own: dict[str, Any] = {"suppression": round((out or 0) / 100, 4)}
    for name, value in (("l", int(l or 0)), ("t", round(t or 0, 3))):
        if isinstance(usual.get(name), dict):
            own[name] = usual[name]
        elif value > (1 if name == "l" else 0):
            own[name] = value
    return own


def _parse_integers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(";", ",").split(",") if part.strip()] or [1]
    except ValueError:
        raise PolicyError("k and l are whole numbers.", hint="Such as 3, 5, 10.") from None


async def _draft_list(context: PageContext, plan: Plan, listed: ui.column) -> None:
    """Draws the drafts, and again until none is being computed."""
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
            set_label(publish, f"{act} {draft['name']}: asks first").props("flat dense no-caps")
        button = ui.button(icon="delete", on_click=remove).props("flat dense round")
        set_label(button, f"Forget the draft {draft['name']}")


def _state(draft: dict[str, Any]) -> None:
    job = draft["job"]
    if draft["figures"]:
        hint_text(drafts.summary(draft["figures"]))
    elif job["state"] in OPEN_STATES:
        hint_text(job.get("stage", "waiting"))
        bar = set_label(ui.linear_progress(show_value=False), "at work")
        bar.props("indeterminate rounded").classes("w-full")
    else:
        error = job["error"] or {"message": "It was cancelled.", "hint": ""}
        ui.label(f"{error['message']} {error['hint']}").classes("text-negative text-sm")
