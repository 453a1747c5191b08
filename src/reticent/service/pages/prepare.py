"""Prepare: a file, its columns with guessed roles and why, hierarchies with a preview, models in words."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui
from starlette.requests import Request

from reticent.service.pages.draft import METHODS, ColumnDraft, Draft, parse_spec, spec_text
from reticent.service.pages.layout import Visit, card, page, trying, visit_of
from reticent.service.routes.common import aside
from reticent.service.routes.tables import keep

_ROLES = {
    "identifier": "identifier: never leaves",
    "quasi": "quasi-identifier: others may know it",
    "sensitive": "sensitive: must not be learned",
    "plain": "plain: released as it is",
}
_KINDS = {
    "none": "value, then *",
    "intervals": "intervals",
    "prefix": "prefix of a code",
    "dates": "dates",
    "icd10": "ICD-10",
    "tree": "tree",
}
_HELP = {
    "intervals": "Widths, finest first: 5, 10, 20",
    "prefix": "Length of the code: 5",
    "tree": "One line per node:\nNorth: Aberdeen, Elgin\nSouth: Dover, Exeter",
}


@ui.page("/")
async def prepare(request: Request, table: str = "") -> None:
    """The page."""
    visit = visit_of(request)
    with page(visit, "Prepare"):
        if not visit.custodian:
            ui.navigate.to("/history")
            return
        _choose(visit)
        if table:
            draft = await trying(aside(lambda: Draft.of(visit.hub, table)))
            if draft is not None:
                _columns(draft)
                _models(visit, draft)


def _choose(visit: Visit) -> None:
    async def taken(event: events.UploadEventArguments) -> None:
        data = await event.file.read()
        name = "".join(c if c.isalnum() or c in " ._()-" else "_" for c in event.file.name)[:100]
        document = await trying(aside(lambda: keep(visit.hub, data, name)))
        if document is not None:
            ui.navigate.to(f"/?table={document['id']}")

    with card("1. The table"):
        ui.label("CSV, Parquet, Arrow or NDJSON. It stays in this machine's store and cannot be read back.").classes(
            "r-muted"
        )
        ui.upload(
            on_upload=taken,
            auto_upload=True,
            max_file_size=visit.settings.max_body,
            label="Drop a file here, or press +",
        ).props('flat bordered color=primary aria-label="Drop a file"').classes("w-full")
        known = {doc["id"]: f"{doc['name']} ({doc['rows']:,} rows)" for doc in visit.hub.tables.all()[:20]}
        if known:
            ui.select(
                known, label="Or take one that was sent", on_change=lambda e: ui.navigate.to(f"/?table={e.value}")
            ).classes("w-full")


def _columns(draft: Draft) -> None:
    with card(f"2. The columns of {draft.table['name']}"):
        ui.label(f"{draft.table['rows']:,} rows. The roles are guesses: read each reason and correct it.").classes(
            "r-muted"
        )
        for column in draft.columns:
            _one_column(column)


def _one_column(column: ColumnDraft) -> None:
    with ui.row().classes("w-full items-center gap-2 q-py-xs"):
        with ui.column().classes("gap-0 col-12 col-sm-4"):
            ui.label(column.name).classes("font-medium")
            ui.label(column.why).classes("r-muted text-xs")
        ui.select(_ROLES, value=column.role, on_change=lambda e: setattr(column, "role", e.value)).props(
            f'dense outlined options-dense aria-label="Role of {column.name}"'
        ).classes("col-12 col-sm-4")
        button = ui.button(_shown(column), icon="account_tree").props(
            f'flat dense no-caps aria-label="Hierarchy of {column.name}"'
        )
        button.on_click(lambda: _edit(column, button))


def _shown(column: ColumnDraft) -> str:
    kind, text = spec_text(column.hierarchy)
    return f"{_KINDS.get(kind, kind)} {text if kind in ('intervals', 'prefix') else ''}".strip()


def _edit(column: ColumnDraft, button: ui.button) -> None:
    kind, text = spec_text(column.hierarchy)
    with ui.dialog() as dialog, ui.card().classes("w-full"):
        ui.label(f"Hierarchy of {column.name}").classes("text-lg")
        chosen = ui.select(_KINDS, value=kind, label="Kind").classes("w-full")
        typed = ui.textarea("Details", value=text).props("outlined autogrow").classes("w-full")
        shown = ui.column().classes("w-full gap-1")

        def look() -> bool:
            typed.props(f'hint="{_HELP.get(str(chosen.value), "")}"')
            typed.set_visibility(chosen.value in _HELP)
            shown.clear()
            with shown:
                return _preview(column, str(chosen.value), str(typed.value or ""))

        def take() -> None:
            if look():
                column.hierarchy = parse_spec(str(chosen.value), str(typed.value or ""))
                button.set_text(_shown(column))
                dialog.close()

        chosen.on_value_change(look)
        typed.on_value_change(look)
        look()
        with ui.row():
            ui.button("Take it", on_click=take)
            ui.button("Leave it", on_click=dialog.close).props("flat")
    dialog.open()


def _preview(column: ColumnDraft, kind: str, text: str) -> bool:
    """Shows what a hierarchy does; whether it fits the column."""
    try:
        rows = column.preview(parse_spec(kind, text))
    except Exception as error:  # noqa: BLE001 - told below the editor
        ui.label(getattr(error, "message", "This hierarchy does not fit.")).classes("text-negative").props("role=alert")
        return False
    ui.label("What some values become, level by level:").classes("r-muted text-sm")
    for row in rows:
        ui.label(" → ".join(row)).classes("r-code")
    return True


def _models(visit: Visit, draft: Draft) -> None:
    with card("3. What must hold"):
        ui.select(METHODS, value=draft.method, label="Method").bind_value(draft, "method").classes("w-full")
        _slider(draft, "k", 1, 50, 1, lambda v: f"k = {v}: nobody can be told from {v - 1} others" if v > 1 else "no k")
        _slider(
            draft,
            "l",
            1,
            20,
            1,
            lambda v: f"l = {v}: at least {v} sensitive values in every group" if v > 1 else "no l",
        )
        _slider(
            draft,
            "t",
            0.0,
            1.0,
            0.05,
            lambda v: f"t = {v:.2f}: a group tells little more than the whole table" if v else "no t",
        )
        _slider(draft, "suppression", 0.0, 0.2, 0.01, lambda v: f"at most {v:.0%} of the records are left out")

        async def go() -> None:
            def work() -> dict[str, Any]:
                policy = visit.hub.accept(draft.bundle())
                policy.check_columns(draft.table["columns"])
                request = {"table": draft.table["id"], "policy_hash": policy.hash, "method": draft.method}
                return visit.hub.jobs.begin("table", draft.table["name"], request)

            job = await trying(aside(work))
            if job is not None:
                ui.navigate.to(f"/release?job={job['id']}")

        ui.button("Release it", icon="publish", on_click=go).props("size=lg")


def _slider(draft: Draft, name: str, low: float, high: float, step: float, words: Any) -> None:
    label = ui.label(words(getattr(draft, name)))

    def moved(event: events.ValueChangeEventArguments[Any]) -> None:
        value = int(event.value) if isinstance(step, int) else float(event.value)
        setattr(draft, name, value)
        label.set_text(words(value))

    ui.slider(min=low, max=high, step=step, value=getattr(draft, name), on_change=moved).props(
        f'aria-label="{name}"'
    ).classes("w-full")
