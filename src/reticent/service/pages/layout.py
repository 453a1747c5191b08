"""Shared parts of all pages: the frame, the colors and the current user."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nicegui import ui
from starlette.requests import Request

from reticent.service.hub import Hub
from reticent.service.pages.safe_elements import notify_error
from reticent.service.problems import to_service_error
from reticent.service.settings import Settings
from reticent.service.tokens import Role, Token

PAGES = {
    "Data": "/",
    "Sources": "/sources",
    "History": "/history",
    "Explore": "/explore",
    "Ledger": "/ledger",
    "Work": "/work",
}
# Analysts read releases; all other pages are for custodians.
_ANALYST_PAGES = ("History", "Explore")
STEPS = {
    "Data": "/",
    "Roles": "/roles",
    "Drafts": "/drafts",
    "Compare": "/compare",
    "Publish": "/publish",
    "History": "/history",
}
# Readable as small text on white and on black.
GOOD, BAD, MAIN, SECOND = "#0f766e", "#c2410c", "#0b6a80", "#b45309"
_BUILD_TIMEOUT = 120.0
"""Seconds to build a page, which may read large tables; NiceGUI's default is three."""
T = TypeVar("T")
PageBuilder = Callable[..., Awaitable[None]]

_STYLE = f"<style>{Path(__file__).with_name('style.css').read_text(encoding='utf-8')}</style>"


@dataclass(frozen=True)
class PageContext:
    """The hub, the user and the settings of a page request."""

    hub: Hub
    user: Token
    settings: Settings

    @property
    def is_custodian(self) -> bool:
        """Whether the user is a custodian."""
        return self.user.role is Role.CUSTODIAN


def context_of(request: Request) -> PageContext:
    """Return the context that the sign-in check has stored in a request."""
    hub, user, settings = request.scope["reticent"]
    return PageContext(hub, user, settings)


def studio_page(path: str, here: str, *, everybody: bool = False) -> Callable[[PageBuilder], PageBuilder]:
    """Register a page at an address: for custodians, or with `everybody` for all signed-in users."""

    def register(build: PageBuilder) -> PageBuilder:
        async def show(request: Request, **query: str) -> None:
            context = context_of(request)
            with _frame(context, here, everybody=everybody):
                if everybody or context.is_custodian:
                    await build(context, **query)

        _, *parameters = inspect.signature(build).parameters.values()
        request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        show.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # NiceGUI reads the query parameters from it
            [request, *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters)]
        )
        ui.page(path, response_timeout=_BUILD_TIMEOUT)(show)
        return build

    return register


@contextmanager
def _frame(context: PageContext, here: str, *, everybody: bool) -> Iterator[None]:
    """Draw the header and the column of a page; analysts get links to their pages only."""
    ui.add_head_html(_STYLE)
    ui.colors(primary=MAIN, secondary=SECOND, positive=GOOD, negative=BAD)
    dark = ui.dark_mode(None)
    with ui.header().classes("items-center q-py-xs no-wrap").props("elevated"):
        ui.label("Reticent").classes("text-lg font-bold r-wide")
        with ui.element("nav").props('aria-label="Pages"').classes("row no-wrap"):
            for name, target in PAGES.items():
                if context.is_custodian or name in _ANALYST_PAGES:
                    link = ui.link(name, target).classes("r-nav")
                    if name == here:
                        link.props("aria-current=page")
        ui.space()
        contrast = ui.button(icon="contrast", on_click=lambda: dark.set_value(not dark.value))
        contrast.props('flat round dense color=white aria-label="Light or dark"')
        if context.user.id != "demo":
            with ui.element("form").props('method=post action="/sign-in/out"'):
                ui.button(icon="logout").props('flat round dense color=white type=submit aria-label="Sign out"')
    with ui.column().classes("r-page"):
        if context.settings.allows_anonymous:
            hint_text("Demonstration with synthetic data; requests from this machine need no token.")
        if not (context.is_custodian or everybody):
            ui.label("Analysts can see the history and query releases.").props("role=alert")
        yield
        ui.label("Times are in UTC.").classes("r-muted text-xs")


def card(title: str) -> ui.card:
    """Return a card with a heading."""
    frame = ui.card().classes("r-card")
    with frame:
        ui.label(title).classes("text-lg font-medium").props("role=heading aria-level=2")
    return frame


def hint_text(words: str) -> ui.label:
    """Return a label with an explanation."""
    return ui.label(words).classes("r-muted text-sm")


def page_select(options: Any, here: str, label: str, address: str) -> ui.select:
    """Return a select that navigates to the address of the selected option."""
    select = ui.select(
        options, value=here, label=label, on_change=lambda event: ui.navigate.to(f"{address}{event.value}")
    )
    return select.classes("w-full")


def steps(here: str, table: str = "") -> None:
    """Draw the steps of a table through the studio and mark the current one."""
    with ui.element("nav").props('aria-label="Steps"').classes("row items-center gap-1 w-full"):
        for name, path in STEPS.items():
            if name != "Data":
                ui.label("→").classes("r-muted").props("aria-hidden=true")
            needs_table = name not in ("Data", "History")
            if needs_table and not table:
                ui.label(name).classes("r-step r-muted")
                continue
            link = ui.link(name, f"{path}?table={table}" if needs_table else path).classes("r-step")
            if name == here:
                link.props("aria-current=step")


def figure(words: str, value: str = "-") -> ui.label:
    """Draw a number with its meaning below and return the label of the number."""
    with ui.column().classes("gap-0"):
        number = ui.label(value).classes("r-figure")
        ui.label(words).classes("r-muted text-sm")
    return number


async def wait_for_browser() -> None:
    """Wait until the browser displays the frame of a page; slow parts come afterwards."""
    await ui.context.client.connected()


async def yield_control() -> None:
    """Let other tasks run: the event loop that builds a page also answers the feeds."""
    await asyncio.sleep(0)


def status_text(words: str, *, bad: bool = False) -> ui.label:
    """Return a label that a screen reader announces."""
    label = ui.label(words).props("role=status")
    return label.classes("text-negative font-medium" if bad else "r-muted")


def format_time(text: str) -> str:
    """Return a time as date and minute."""
    return text[:16].replace("T", " ")


async def run_or_notify(work: Awaitable[T]) -> T | None:
    """Await work, and notify the user of an error without quoting data."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the user gets a notification
        problem = to_service_error(error)
        notify_error(f"{problem.message} {problem.hint}")
        return None
