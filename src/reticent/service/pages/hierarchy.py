"""The editor of hierarchies: kind, details, and what some values become."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from reticent.service.pages.layout import PageContext, hint_text
from reticent.service.pages.plan import Plan, parse_spec, preview_levels, spec_text
from reticent.service.pages.safe_elements import set_attributes
from reticent.service.routes.common import in_thread

_KINDS = {
    "none": "value, then *",
    "intervals": "intervals",
    "prefix": "prefix of a code",
    "dates": "dates",
    "icd9": "ICD-9",
    "icd10": "ICD-10",
    "tree": "tree",
}
_HELP = {
    "intervals": "Widths, finest first: 5, 10, 20",
    "prefix": "Length of the code: 5",
    "tree": "One line per node, such as North: Aberdeen, Elgin",
}


def describe_spec(spec: dict[str, Any] | None) -> str:
    """A hierarchy in some words."""
    kind, text = spec_text(spec)
    if kind == "prefix":
        return f"first of its {text} characters"
    if kind == "intervals":
        return f"intervals in {text.count('[')} steps" if "[" in text else f"intervals of {text}"
    return _KINDS.get(kind, kind)


def edit_hierarchy(context: PageContext, plan: Plan, names: list[str], keep: Callable[[], Awaitable[None]]) -> None:
    """Opens the editor for some columns; the preview is of the first."""
    usual = plan.hierarchy(names[0])
    kind, text = spec_text(usual)
    title = f"Hierarchy of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    with ui.dialog() as dialog, ui.card().classes("w-full"):
        ui.label(title).classes("text-lg").props("role=heading aria-level=2")
        chosen = ui.select(_KINDS | {kind: _KINDS.get(kind, kind)}, value=kind, label="Kind").classes("w-full")
        typed = ui.textarea("Details", value=text).props("outlined autogrow").classes("w-full")
        level = ui.number(
            "Level that the veil shows, 0 as it is",
            value=plan.settings["columns"][names[0]].get("level", 0),
            min=0,
            max=20,
        ).classes("w-full")
        shown = ui.column().classes("w-full gap-1")

        def spec() -> dict[str, Any] | None:
            now = (str(chosen.value), str(typed.value or ""))
            return usual if now == (kind, text) else parse_spec(*now)

        async def look() -> bool:
            set_attributes(typed, hint=_HELP.get(str(chosen.value), ""))
            typed.set_visibility(chosen.value in _HELP)
            typed.update()
            rows, problem = await in_thread(lambda: _try_levels(context, plan, names[0], spec))
            shown.clear()
            with shown:
                _preview(rows, problem)
            return not problem

        async def take() -> None:
            if await look():
                plan.set_hierarchy(names, spec(), level=int(level.value or 0))
                dialog.close()
                await keep()

        chosen.on_value_change(look)
        typed.on_value_change(look)
        with ui.row():
            ui.button("Take it", on_click=take)
            ui.button("Leave it", on_click=dialog.close).props("flat")
        ui.timer(0, look, once=True)
    dialog.open()


def _try_levels(
    context: PageContext, plan: Plan, name: str, spec: Callable[[], dict[str, Any] | None]
) -> tuple[list[list[str]], str]:
    try:
        return preview_levels(context.hub, plan.table["id"], name, spec()), ""
    except Exception as error:  # noqa: BLE001 - told below the editor
        return [], getattr(error, "message", "This hierarchy does not fit.")


def _preview(rows: list[list[str]], problem: str) -> None:
    if problem:
        ui.label(problem).classes("text-negative").props("role=alert")
        return
    hint_text("What some values become, level by level:")
    for row in rows:
        ui.label(" → ".join(row)).classes("r-code")
