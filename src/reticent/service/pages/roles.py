"""Roles: the columns with some values and their roles, the person column, the prior and the policy file."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui

from reticent.errors import PolicyError
from reticent.service.pages.data import drop_area, read_policy_files
from reticent.service.pages.hierarchy import describe_spec, edit_hierarchy
from reticent.service.pages.layout import (
    PageContext,
    card,
    hint_text,
    run_or_notify,
    status_text,
    steps,
    studio_page,
    yield_control,
)
from reticent.service.pages.plan import KINDS, Plan, load_plan
from reticent.service.pages.prior import prior_card
from reticent.service.pages.safe_elements import number_rows, selectable_table, set_label
from reticent.service.routes.common import in_thread

ROLES = {
    "identifier": "never released",
    "quasi": "an attacker may know it, so it is generalized",
    "sensitive": "an attacker must not learn it about a person",
    "plain": "released unchanged",
}
_HEADERS = ("Column", "Role", "Some values", "Generalization", "Reason")


@studio_page("/roles", "Data")
async def roles(context: PageContext, table: str = "") -> None:
    """Draw the page."""
    steps("Roles", table)
    if (plan := await load_plan(context, table)) is not None:
        await RolesPage(context, plan).show()


def _generalization_text(plan: Plan, name: str) -> str:
    """Return the hierarchy of a column and the level that the veil publishes."""
    if plan.roles[name] not in ("quasi", "sensitive"):
        return ""
    level = plan.settings["columns"][name].get("level", 0)
    return describe_spec(plan.hierarchy(name)) + (f"; the veil publishes level {level}" if level else "")


class RolesPage:
    """The page of one plan: the table of columns and the cards below it."""

    def __init__(self, context: PageContext, plan: Plan) -> None:
        self._context, self._plan = context, plan
        self._names = list(plan.settings["columns"])

    async def show(self) -> None:
        """Draw the page."""
        with card(f"Columns of {self._plan.table['name']}"):
            status_text(
                f"{self._plan.table['rows']:,} rows. The roles are guesses: check them against the values and correct them."
            )
            hint_text("; ".join(f"{role}: {words}" for role, words in ROLES.items()) + ".")
            self._toolbar()
            self._grid = selectable_table(_HEADERS, self._rows()).on_select(lambda _: self._count())
            self._search.bind_value_to(self._grid, "filter")
            self._count()
        await yield_control()
        with card("Person and kind of release"):
            self._person_card()
        await yield_control()
        prior_card(self._context, self._plan, self._save, self._propose)
        await yield_control()
        self._file_card()
        await yield_control()
        with ui.row().classes("w-full"):
            self._next = ui.button("Next", icon="arrow_forward", on_click=self._next_page).props("size=lg")

    def _rows(self) -> list[list[str]]:
        plan = self._plan
        return [
            [
                name,
                plan.roles[name] + (", identifies the person" if name == plan.person else ""),
                plan.cells.get(name, ""),
                _generalization_text(plan, name),
                plan.why.get(name, ""),
            ]
            for name in self._names
        ]

    def _toolbar(self) -> None:
        with ui.row().classes("w-full items-center gap-2"):
            self._search = ui.input("Search columns, values, roles").props("dense outlined clearable").classes("grow")
            self._chosen = ui.label().props("aria-live=polite").classes("r-muted text-sm")
        with ui.row().classes("w-full items-center gap-2"):
            self._buttons = []
            for role, words in ROLES.items():
                button = ui.button(role, on_click=lambda _, role=role: self._assign_role(role)).props(
                    "dense no-caps outline"
                )
                set_label(button, f"Set the selected columns to {role}: {words}").tooltip(words)
                self._buttons.append(button)
            button = ui.button("Hierarchy", icon="account_tree", on_click=self._edit).props("dense no-caps outline")
            self._buttons.append(set_label(button, "Hierarchy of the selected columns"))

    def _selected_names(self) -> list[str]:
        return [self._names[row["row"]] for row in self._grid.selected]

    def _count(self) -> None:
        number = len(self._grid.selected)
        self._chosen.set_text(f"{number} of {len(self._names)} selected")
        for button in self._buttons:
            button.set_enabled(number > 0)

    async def _assign_role(self, role: str) -> None:
        self._plan.set_role(self._selected_names(), role)
        await self._save()

    def _edit(self) -> None:
        edit_hierarchy(self._context, self._plan, self._selected_names(), self._save)

    async def _save(self) -> None:
        await run_or_notify(in_thread(lambda: self._plan.save(self._context.hub)))
        self._grid.rows = number_rows(self._rows())
        self._grid.selected.clear()
        self._grid.update()
        self._count()
        self._person_select.set_options(self._persons(), value=self._plan.person or "")
        self._text.set_text(self._plan.yaml())

    async def _propose(self) -> None:
        """Propose the levels of the quasi-identifiers for the veil, which would otherwise publish them unchanged."""
        levels = await run_or_notify(in_thread(lambda: self._plan.propose_levels(self._context.hub)))
        if levels:
            ui.notify(f"The veil would generalize {len(levels)} columns; see the column Generalization.")

    def _persons(self) -> dict[str, str]:
        identifiers = [name for name, role in self._plan.roles.items() if role == "identifier"]
        return {"": "none: each record is a person of its own"} | {name: name for name in identifiers}

    def _person_card(self) -> None:
        async def person(event: events.ValueChangeEventArguments[Any]) -> None:
            if (event.value or None) != self._plan.person:
                self._plan.person = event.value or None
                await self._save()

        async def kind(event: events.ValueChangeEventArguments[Any]) -> None:
            self._plan.kind = event.value
            if event.value != "table":
                await self._propose()
            await self._save()

        self._person_select = ui.select(
            self._persons(), value=self._plan.person or "", label="Column that identifies the person", on_change=person
        ).classes("w-full")
        if len(self._persons()) == 1:
            status_text("Without a person column the ledger cannot check whether a person was published before.")
        ui.select(KINDS, value=self._plan.kind, label="Published as", on_change=kind).classes("w-full")

    def _file_card(self) -> None:
        with ui.expansion("Policy file").classes("w-full r-card").props("header-class=text-lg"):
            ui.label(
                "Use this file on the command line: reticent anonymize DATA -p policy.yaml. Upload a policy and its files to replace "
                "these settings."
            ).classes("r-muted")

            async def take_files(event: events.MultiUploadEventArguments) -> None:
                await run_or_notify(self._adopt(*await read_policy_files(event)))

            with ui.row().classes("w-full items-center"):
                ui.button("Download", icon="download", on_click=self._download).props("outline")
            drop_area(
                self._context,
                "Upload policy.yaml and the files that it names",
                several=True,
                on_multi_upload=take_files,
            )
            self._text = ui.label(self._plan.yaml()).classes("r-code w-full")

    async def _adopt(self, policies: list[str], files: dict[str, str]) -> None:
        if len(policies) > 1:
            raise PolicyError("The upload has several policies.", hint="Upload one policy and the files that it names.")
        if policies:
            await in_thread(lambda: self._plan.adopt(self._context.hub, policies[0], files))
        else:
            self._plan.files |= files
        await self._save()
        ui.notify(f"Accepted: {len(policies)} policy and {len(files)} other files.")

    def _download(self) -> None:
        ui.download(self._plan.yaml().encode(), "policy.yaml", "application/yaml")
        for name, text in self._plan.files.items():
            ui.download(text.encode(), name, "text/plain")

    async def _next_page(self) -> None:
        await self._save()
        ui.navigate.to(f"/drafts?table={self._plan.table['id']}")
