"""The editor of hierarchies: kind, details and a preview of some values."""

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
    """Return a short description of a hierarchy."""
    kind, text = spec_text(spec)
    if kind == "prefix":
        return f"prefix of {text} characters"
    if kind == "intervals":
        return f"intervals in {text.count('[')} steps" if "[" in text else f"intervals of {text}"
    return _KINDS.get(kind, kind)


def edit_hierarchy(context: PageContext, plan: Plan, names: list[str], save: Callable[[], Awaitable[None]]) -> None:
    """Open the editor for some columns; the preview is for the first one."""
    current = plan.hierarchy(names[0])
    kind, text = spec_text(current)
    title = f"Hierarchy of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    with ui.dialog() as dialog, ui.card().classes("w-full"):
        ui.label(title).classes("text-lg").props("role=heading aria-level=2")
        kind_select = ui.select(_KINDS | {kind: _KINDS.get(kind, kind)}, value=kind, label="Kind").classes("w-full")
        details = ui.textarea("Details", value=text).props("outlined autogrow").classes("w-full")
        level = ui.number(
            "Level that the veil publishes; 0 for unchanged values",
            value=plan.settings["columns"][names[0]].get("level", 0),
            min=0,
            max=20,
        ).classes("w-full")
        preview = ui.column().classes("w-full gap-1")

        def spec() -> dict[str, Any] | None:
            entered = (str(kind_select.value), str(details.value or ""))
            return current if entered == (kind, text) else parse_spec(*entered)

        async def refresh() -> bool:
            set_attributes(details, hint=_HELP.get(str(kind_select.value), ""))
            details.set_visibility(kind_select.value in _HELP)
            details.update()
            rows, problem = await in_thread(lambda: _try_levels(context, plan, names[0], spec))
            preview.clear()
            with preview:
                _preview(rows, problem)
            return not problem

        async def apply() -> None:
            if await refresh():
                plan.set_hierarchy(names, spec(), level=int(level.value or 0))
                dialog.close()
                await save()

        kind_select.on_value_change(refresh)
        details.on_value_change(refresh)
        with ui.row():
            ui.button("Apply", on_click=apply)
            ui.button("Cancel", on_click=dialog.close).props("flat")
        ui.timer(0, refresh, once=True)
    dialog.open()


def _try_levels(
    context: PageContext, plan: Plan, name: str, spec: Callable[[], dict[str, Any] | None]
) -> tuple[list[list[str]], str]:
    try:
        return preview_levels(context.hub, plan.table["id"], name, spec()), ""
    except Exception as error:  # noqa: BLE001 - displayed below the editor
        return [], getattr(error, "message", "This hierarchy does not fit the column.")


def _preview(rows: list[list[str]], problem: str) -> None:
    if problem:
        ui.label(problem).classes("text-negative").props("role=alert")
        return
    hint_text("Some values at each level:")
    for row in rows:
        ui.label(" → ".join(row)).classes("r-code")
