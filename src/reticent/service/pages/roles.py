"""Roles: a grid of columns with some of their values; search, choose, change many at once; person, prior, policy file."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui

from reticent.errors import PolicyError
from reticent.service.pages.data import drop, texts_of
from reticent.service.pages.hierarchy import edit, in_words
from reticent.service.pages.layout import PageContext, card, status_text, others, small, steps, studio, trying
from reticent.service.pages.plan import KINDS, Plan, planned
from reticent.service.pages.prior import prior
from reticent.service.pages.safe import chooser, labelled, numbered
from reticent.service.routes.common import aside

ROLES = {
    "identifier": "never leaves",
    "quasi": "others may know it, so it is made coarser",
    "sensitive": "must not be learned of anybody",
    "plain": "released as it is",
}
_NAMES = ("Column", "Role", "Some values", "Becomes coarser by", "Why")


@studio("/roles", "Data")
async def roles(context: PageContext, table: str = "") -> None:
    """The page."""
    steps("Roles", table)
    if (plan := await planned(context, table)) is not None:
        await Roles(context, plan).show()


def _coarser(plan: Plan, name: str) -> str:
    """How a column is made coarser, and how far the veil goes."""
    if plan.roles[name] not in ("quasi", "sensitive"):
        return ""
    level = plan.settings["columns"][name].get("level", 0)
    return in_words(plan.hierarchy(name)) + (f"; the veil shows level {level}" if level else "")


class Roles:
    """The grid and what stands around it, over one plan."""

    def __init__(self, context: PageContext, plan: Plan) -> None:
        self._context, self._plan = context, plan
        self._names = list(plan.settings["columns"])

    async def show(self) -> None:
        """Draws it."""
        with card(f"The columns of {self._plan.table['name']}"):
            status_text(f"{self._plan.table['rows']:,} rows. The roles are guesses: look at the values and correct them.")
            small("; ".join(f"{role}: {words}" for role, words in ROLES.items()) + ".")
            self._bar()
            self._grid = chooser(_NAMES, self._rows()).on_select(lambda _: self._count())
            self._search.bind_value_to(self._grid, "filter")
            self._count()
        await others()
        with card("Who, and what for"):
            self._about()
        await others()
        prior(self._context, self._plan, self._keep, self._propose)
        await others()
        self._file()
        await others()
        with ui.row().classes("w-full"):
            self._next = ui.button("Next", icon="arrow_forward", on_click=self._go).props("size=lg")

    def _rows(self) -> list[list[str]]:
        plan = self._plan
        return [
            [
                name,
                plan.roles[name] + (", names the person" if name == plan.person else ""),
                plan.cells.get(name, ""),
                _coarser(plan, name),
                plan.why.get(name, ""),
            ]
            for name in self._names
        ]

    def _bar(self) -> None:
        with ui.row().classes("w-full items-center gap-2"):
            self._search = ui.input("Search columns, values, roles").props("dense outlined clearable").classes("grow")
            self._chosen = ui.label().props("aria-live=polite").classes("r-muted text-sm")
        with ui.row().classes("w-full items-center gap-2"):
            self._buttons = []
            for role, words in ROLES.items():
                button = ui.button(role, on_click=lambda _, role=role: self._give(role)).props("dense no-caps outline")
                labelled(button, f"Make the chosen columns {role}: {words}").tooltip(words)
                self._buttons.append(button)
            button = ui.button("Hierarchy", icon="account_tree", on_click=self._edit).props("dense no-caps outline")
            self._buttons.append(labelled(button, "Hierarchy of the chosen columns"))

    def _picked(self) -> list[str]:
        return [self._names[row["row"]] for row in self._grid.selected]

    def _count(self) -> None:
        number = len(self._grid.selected)
        self._chosen.set_text(f"{number} of {len(self._names)} chosen")
        for button in self._buttons:
            button.set_enabled(number > 0)

    async def _give(self, role: str) -> None:
        self._plan.set_role(self._picked(), role)
        await self._keep()

    def _edit(self) -> None:
        edit(self._context, self._plan, self._picked(), self._keep)

    async def _keep(self) -> None:
        await trying(aside(lambda: self._plan.save(self._context.hub)))
        self._grid.rows = numbered(self._rows())
        self._grid.selected.clear()
        self._grid.update()
        self._count()
        self._people.set_options(self._persons(), value=self._plan.person or "")
        self._text.set_text(self._plan.yaml())

    async def _propose(self) -> None:
        """Levels at which the veil shows the quasi-identifiers: without them it would show each as it is."""
        levels = await trying(aside(lambda: self._plan.propose_levels(self._context.hub)))
        if levels:
            ui.notify(f"The veil would show {len(levels)} columns coarser than they are; see Becomes coarser by.")

    def _persons(self) -> dict[str, str]:
        identifiers = [name for name, role in self._plan.roles.items() if role == "identifier"]
        return {"": "nobody: every record counts for itself"} | {name: name for name in identifiers}

    def _about(self) -> None:
        async def person(event: events.ValueChangeEventArguments[Any]) -> None:
            if (event.value or None) != self._plan.person:
                self._plan.person = event.value or None
                await self._keep()

        async def kind(event: events.ValueChangeEventArguments[Any]) -> None:
            self._plan.kind = event.value
            if event.value != "table":
                await self._propose()
            await self._keep()

        self._people = ui.select(
            self._persons(), value=self._plan.person or "", label="Column that names the person", on_change=person
        ).classes("w-full")
        if len(self._persons()) == 1:
            status_text("Without a person the ledger cannot tell whether somebody was published before.")
        ui.select(KINDS, value=self._plan.kind, label="What it will be", on_change=kind).classes("w-full")

    def _file(self) -> None:
        with ui.expansion("Policy as a file").classes("w-full r-card").props("header-class=text-lg"):
            ui.label(
                "The same file as of the command line: reticent anonymize DATA -p policy.yaml. Send one, and the files it names, to "
                "put it in place of these choices."
            ).classes("r-muted")

            async def taken(event: events.MultiUploadEventArguments) -> None:
                await trying(self._take(*await texts_of(event)))

            with ui.row().classes("w-full items-center"):
                ui.button("Download", icon="download", on_click=self._download).props("outline")
            drop(self._context, "Send policy.yaml and the files it names", several=True, on_multi_upload=taken)
            self._text = ui.label(self._plan.yaml()).classes("r-code w-full")

    async def _take(self, policies: list[str], files: dict[str, str]) -> None:
        if len(policies) > 1:
            raise PolicyError("There are several policies.", hint="Send one, with the files it names.")
        if policies:
            await aside(lambda: self._plan.take(self._context.hub, policies[0], files))
        else:
            self._plan.files |= files
        await self._keep()
        ui.notify(f"Taken: {len(policies)} policy and {len(files)} other files.")

    def _download(self) -> None:
        ui.download(self._plan.yaml().encode(), "policy.yaml", "application/yaml")
        for name, text in self._plan.files.items():
            ui.download(text.encode(), name, "text/plain")

    async def _go(self) -> None:
        await self._keep()
        ui.navigate.to(f"/try?table={self._plan.table['id']}")
