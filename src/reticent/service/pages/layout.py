"""What all pages share: the frame, the colours, and who is looking."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from nicegui import ui
from starlette.requests import Request

from reticent.service.pages.safe import complain
from reticent.service.problems import described
from reticent.service.tokens import Role, Token

if TYPE_CHECKING:
    from reticent.service.hub import Hub
    from reticent.service.settings import Settings

PAGES = {
    "Data": "/",
    "Sources": "/sources",
    "History": "/history",
    "Explore": "/explore",
    "Ledger": "/ledger",
    "Work": "/work",
}
# Analysts read what was released; everything else is the custodian's.
_OPEN = ("History", "Explore")
STEPS = {
    "Data": "/",
    "Roles": "/roles",
    "Try": "/try",
    "Compare": "/compare",
    "Publish": "/publish",
    "Watch": "/history",
}
# Dark enough on white and light enough on black for small text.
GOOD, BAD, MAIN, SECOND = "#0f766e", "#c2410c", "#0b6a80", "#b45309"
_PATIENCE = 120.0
"""Seconds a page may take to be built: it reads tables of any size, on a thread, and the kit would give up after three."""
T = TypeVar("T")
Build = Callable[..., Awaitable[None]]

_STYLE = """
<style>
.q-header { background: #0b4a59 !important; }
.r-page { max-width: 76rem; margin: 0 auto; width: 100%; padding: .75rem; gap: 1rem; }
.r-card { width: 100%; border-radius: .75rem; }
.r-muted { color: #4b5a65; } .body--dark .r-muted { color: #b4c2cc; }
.r-nav { color: white !important; text-decoration: none; padding: .5rem .75rem; border-radius: .5rem; }
.r-nav:hover, .r-nav:focus-visible { background: rgb(255 255 255 / .18); outline: 2px solid white; }
.r-nav[aria-current=page] { background: rgb(255 255 255 / .25); font-weight: 600; }
.r-figure { font-size: 1.7rem; font-weight: 600; line-height: 1.1; font-variant-numeric: tabular-nums; }
.r-code { font-family: ui-monospace, monospace; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.r-scroll { overflow-x: auto; width: 100%; } .r-scroll .q-table__middle { overflow: visible; }
.q-btn { text-transform: none; } .body--dark .q-uploader { background: transparent; }
.r-drop .q-uploader__list { min-height: 0; padding: 0; } .r-drop .q-btn__content { flex-wrap: nowrap; text-align: left; }
.q-loading-bar { display: none; }
@media (prefers-reduced-motion: reduce) { *, *::before, *::after { transition: none !important; animation: none !important; } }
.nicegui-link { color: #0b6a80; } .body--dark .nicegui-link { color: #6fd3e8; }
.r-step { padding: .25rem .6rem; border-radius: 1rem; text-decoration: none; color: inherit !important; }
.r-step[aria-current=step] { background: #0b4a59; color: white !important; font-weight: 600; }
.r-columns { width: 100%; } .r-columns td { white-space: normal !important; } .r-columns .q-table__middle { max-height: 60vh; }
.r-columns thead tr:first-child th { position: sticky; top: 0; z-index: 1; background: white; }
.body--dark .r-columns thead tr:first-child th { background: #1c252c; }
.r-cells { max-width: 22rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .8rem; }
.r-phone { display: none; }
.body--dark { background: #12181d; }
.body--dark .q-card { background: #1c252c; }
.body--dark .q-table__card { background: transparent; }
/* The colours of words, brighter on a dark ground; those of filled buttons stay. */
.body--dark :is(.q-btn--flat, .q-btn--outline, .q-badge--outline, .q-icon, .q-slider, .text-positive, .text-negative) {
  --q-primary: #6fd3e8; --q-positive: #5eead4; --q-negative: #ffa07a; }
:focus-visible { outline: 2px solid #0b6a80; outline-offset: 1px; }
@media (max-width: 600px) { .r-nav { padding: .5rem .28rem; font-size: .82rem; } .q-header { padding: 4px !important; gap: 0 !important; }
  .r-figure { font-size: 1.3rem; }
  .r-wide { display: none; } .r-phone { display: block; } .r-cells { max-width: 11rem; }
  .r-columns th:nth-child(n+4), .r-columns td:nth-child(n+4) { display: none; }
  .r-columns .q-table td, .r-columns .q-table th, .r-scroll .q-table td, .r-scroll .q-table th { padding: 4px !important; }
  .r-scroll .q-table th, .r-scroll .q-table td:first-child { white-space: normal; } }
</style>
"""


@dataclass(frozen=True)
class Visit:
    """Who looks, and at what."""

    hub: Hub
    who: Token
    settings: Settings

    @property
    def custodian(self) -> bool:
        """Whether the visitor may change things."""
        return self.who.role is Role.CUSTODIAN


def visit_of(request: Request) -> Visit:
    """The visitor, as the gate found them."""
    hub, who, settings = request.scope["reticent"]
    return Visit(hub, who, settings)


def studio(path: str, here: str, *, everybody: bool = False) -> Callable[[Build], Build]:
    """A page at an address, built within its frame: for custodians, unless it is for everybody who may sign in."""

    def placed(build: Build) -> Build:
        async def shown(request: Request, **asked: str) -> None:
            visit = visit_of(request)
            with _frame(visit, here, everybody=everybody):
                if everybody or visit.custodian:
                    await build(visit, **asked)

        _, *asked = inspect.signature(build).parameters.values()
        request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        shown.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # what the kit reads the query by
            [request, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in asked)]
        )
        ui.page(path, response_timeout=_PATIENCE)(shown)
        return build

    return placed


@contextmanager
def _frame(visit: Visit, here: str, *, everybody: bool) -> Iterator[None]:
    """What stands around a page; analysts see what was released and nothing else, and of that nothing private."""
    ui.add_head_html(_STYLE)
    ui.colors(primary=MAIN, secondary=SECOND, positive=GOOD, negative=BAD)
    dark = ui.dark_mode(None)
    with ui.header().classes("items-center q-py-xs no-wrap").props("elevated"):
        ui.label("Reticent").classes("text-lg font-bold r-wide")
        with ui.element("nav").props('aria-label="Pages"').classes("row no-wrap"):
            for name, target in PAGES.items():
                if visit.custodian or name in _OPEN:
                    link = ui.link(name, target).classes("r-nav")
                    if name == here:
                        link.props("aria-current=page")
        ui.space()
        turn = ui.button(icon="contrast", on_click=lambda: dark.set_value(not dark.value))
        turn.props('flat round dense color=white aria-label="Light or dark"')
        if visit.who.id != "demo":
            with ui.element("form").props('method=post action="/sign-in/out"'):
                ui.button(icon="logout").props('flat round dense color=white type=submit aria-label="Sign out"')
    with ui.column().classes("r-page"):
        if visit.settings.open:
            small("Demonstration: synthetic data about nobody; no token is needed on this machine.")
        if not (visit.custodian or everybody):
            ui.label("An analyst may see the history and ask releases.").props("role=alert")
        yield
        ui.label("Times are in UTC.").classes("r-muted text-xs")


def card(title: str) -> ui.card:
    """A card, with a heading."""
    frame = ui.card().classes("r-card")
    with frame:
        ui.label(title).classes("text-lg font-medium").props("role=heading aria-level=2")
    return frame


def small(words: str) -> ui.label:
    """A sentence that explains."""
    return ui.label(words).classes("r-muted text-sm")


def choice(options: Any, here: str, label: str, address: str) -> ui.select:
    """A choice between pages: what is chosen follows the address."""
    go = ui.select(options, value=here, label=label, on_change=lambda event: ui.navigate.to(f"{address}{event.value}"))
    return go.classes("w-full")


def steps(here: str, table: str = "") -> None:
    """The way of a table through the studio, and where it is now."""
    with ui.element("nav").props('aria-label="Steps"').classes("row items-center gap-1 w-full"):
        for name, path in STEPS.items():
            if name != "Data":
                ui.label("→").classes("r-muted").props("aria-hidden=true")
            if table or name in ("Data", "Watch"):
                own = name not in ("Data", "Watch")
                link = ui.link(name, f"{path}?table={table}" if own else path).classes("r-step")
            else:
                ui.label(name).classes("r-step r-muted")
                continue
            if name == here:
                link.props("aria-current=step")


def figure(words: str, value: str = "-") -> ui.label:
    """A number with what it means below; returns the number."""
    with ui.column().classes("gap-0"):
        number = ui.label(value).classes("r-figure")
        ui.label(words).classes("r-muted text-sm")
    return number


async def arrived() -> None:
    """Waits until the frame of a page is on the visitor's screen: what is slow comes after it."""
    await ui.context.client.connected()


async def others() -> None:
    """Lets others have their turn: a page is built on the loop that answers the feeds, a few milliseconds at a time."""
    await asyncio.sleep(0)


def held(words: str, *, bad: bool = False) -> ui.label:
    """A sentence that a reader of the screen is told at once."""
    label = ui.label(words).props("role=status")
    return label.classes("text-negative font-medium" if bad else "r-muted")


def moment(text: str) -> str:
    """A time as people write it."""
    return text[:16].replace("T", " ")


async def trying(work: Awaitable[T]) -> T | None:
    """Awaits something and tells the visitor when it fails, in words that quote no data."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - it is told, not raised
        problem = described(error)
        complain(f"{problem.message} {problem.hint}")
        return None
