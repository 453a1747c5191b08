"""What all pages share: the frame, the colours, and who is looking."""

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
# Analysts read what was released; everything else is the custodian's.
_ANALYST_PAGES = ("History", "Explore")
STEPS = {
    "Data": "/",
    "Roles": "/roles",
    "Try": "/drafts",
    "Compare": "/compare",
    "Publish": "/publish",
    "Watch": "/history",
}
# Dark enough on white and light enough on black for small text.
GOOD, BAD, MAIN, SECOND = "#0f766e", "#c2410c", "#0b6a80", "#b45309"
_BUILD_TIMEOUT = 120.0
"""Seconds a page may take to be built: it reads tables of any size, on a thread, and the kit would give up after three."""
T = TypeVar("T")
PageBuilder = Callable[..., Awaitable[None]]

_STYLE = f"<style>{Path(__file__).with_name('style.css').read_text(encoding='utf-8')}</style>"


@dataclass(frozen=True)
class PageContext:
    """Who looks, and at what."""

    hub: Hub
    user: Token
    settings: Settings

    @property
    def is_custodian(self) -> bool:
        """Whether the visitor may change things."""
        return self.user.role is Role.CUSTODIAN


def context_of(request: Request) -> PageContext:
    """The visitor, as the gate found them."""
    hub, who, settings = request.scope["reticent"]
    return PageContext(hub, who, settings)


def studio_page(path: str, here: str, *, everybody: bool = False) -> Callable[[PageBuilder], PageBuilder]:
    """A page at an address, built within its frame: for custodians, unless it is for everybody who may sign in."""

    def register(build: PageBuilder) -> PageBuilder:
        async def show(request: Request, **asked: str) -> None:
            visit = context_of(request)
            with _frame(visit, here, everybody=everybody):
                if everybody or visit.is_custodian:
                    await build(visit, **asked)

        _, *asked = inspect.signature(build).parameters.values()
        request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        show.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # what the kit reads the query by
            [request, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in asked)]
        )
        ui.page(path, response_timeout=_BUILD_TIMEOUT)(show)
        return build

    return register


@contextmanager
def _frame(context: PageContext, here: str, *, everybody: bool) -> Iterator[None]:
    """What stands around a page; analysts see what was released and nothing else, and of that nothing private."""
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
        turn = ui.button(icon="contrast", on_click=lambda: dark.set_value(not dark.value))
        turn.props('flat round dense color=white aria-label="Light or dark"')
        if context.user.id != "demo":
            with ui.element("form").props('method=post action="/sign-in/out"'):
                ui.button(icon="logout").props('flat round dense color=white type=submit aria-label="Sign out"')
    with ui.column().classes("r-page"):
        if context.settings.allows_anonymous:
            hint_text("Demonstration: synthetic data about nobody; no token is needed on this machine.")
        if not (context.is_custodian or everybody):
            ui.label("An analyst may see the history and ask releases.").props("role=alert")
        yield
        ui.label("Times are in UTC.").classes("r-muted text-xs")


def card(title: str) -> ui.card:
    """A card, with a heading."""
    frame = ui.card().classes("r-card")
    with frame:
        ui.label(title).classes("text-lg font-medium").props("role=heading aria-level=2")
    return frame


def hint_text(words: str) -> ui.label:
    """A sentence that explains."""
    return ui.label(words).classes("r-muted text-sm")


def page_select(options: Any, here: str, label: str, address: str) -> ui.select:
    """A choice between pages: what is chosen follows the address."""
    go = ui.select(options, value=here, label=label, on_change=lambda event: ui.navigate.to(f"{address}{event.value}"))
    return go.classes("w-full")


def steps(here: str, table: str = "") -> None:
    """The way of a table through the studio, and where it is now."""
    with ui.element("nav").props('aria-label="Steps"').classes("row items-center gap-1 w-full"):
        for name, path in STEPS.items():
            if name != "Data":
                ui.label("→").classes("r-muted").props("aria-hidden=true")
            own = name not in ("Data", "Watch")
            if own and not table:
                ui.label(name).classes("r-step r-muted")
                continue
            link = ui.link(name, f"{path}?table={table}" if own else path).classes("r-step")
            if name == here:
                link.props("aria-current=step")


def figure(words: str, value: str = "-") -> ui.label:
    """A number with what it means below; returns the number."""
    with ui.column().classes("gap-0"):
        number = ui.label(value).classes("r-figure")
        ui.label(words).classes("r-muted text-sm")
    return number


async def wait_for_browser() -> None:
    """Waits until the frame of a page is on the visitor's screen: what is slow comes after it."""
    await ui.context.client.connected()


async def yield_control() -> None:
    """Lets others have their turn: a page is built on the loop that answers the feeds, a few milliseconds at a time."""
    await asyncio.sleep(0)


def status_text(words: str, *, bad: bool = False) -> ui.label:
    """A sentence that a reader of the screen is told at once."""
    label = ui.label(words).props("role=status")
    return label.classes("text-negative font-medium" if bad else "r-muted")


def format_time(text: str) -> str:
    """A time as people write it."""
    return text[:16].replace("T", " ")


async def run_or_notify(work: Awaitable[T]) -> T | None:
    """Awaits something and tells the visitor when it fails, in words that quote no data."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - it is told, not raised
        problem = to_service_error(error)
        notify_error(f"{problem.message} {problem.hint}")
        return None
