"""Sources: streams, evolving tables and series that run here; and beginning one under a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from nicegui import events, ui

from reticent.errors import PolicyError
from reticent.policy.bundle import Bundle
from reticent.service.pages.data import drop_area, read_policy_files
from reticent.service.pages.layout import PageContext, card, hint_text, run_or_notify, status_text, studio_page
from reticent.service.pages.plan import KINDS
from reticent.service.policy_registry import parse_policy
from reticent.service.routes.common import in_thread

SOURCE_PATHS = {"stream": "/live?stream=", "evolving": "/evolving?name=", "series": "/series?name="}


@studio_page("/sources", "Sources")
async def sources(context: PageContext) -> None:
    """The page."""
    hub = context.hub
    rows = [("stream", name, _stream_text(one.status())) for name, one in sorted(hub.streams.items())]
    rows += [("evolving", n, _evolving_text(await in_thread(one.status))) for n, one in sorted(hub.evolving.items())]
    for name, one in sorted(hub.series.items()):
        ledger = await in_thread(partial(one.store.ledger, one.name))
        rows.append(("series", name, f"{one.policy.series.method}; {len(ledger):,} releases"))
    with card("What runs here"):
        if not rows:
            status_text("No stream, evolving table or series yet.")
        for kind, name, words in rows:
            with ui.column().classes("gap-0 w-full"):
                ui.link(f"{KINDS[kind].partition(':')[0]}: {name}", f"{SOURCE_PATHS[kind]}{name}").classes(
                    "font-medium"
                )
                hint_text(words)
    with card("Begin one"):
        with ui.row().classes("items-center gap-1"):
            ui.label("From data: give roles, choose what it will be, and try it.").classes("r-muted")
            ui.link("Send a sample", "/")
        ui.label("Or from a policy:").classes("r-muted")
        _from_policy(context)


def _stream_text(state: dict[str, Any]) -> str:
    words = "stopped" if state["stopped"] else "taking records"
    return f"{state['method']}; {words}; {state['input']:,} records so far, {state['withheld']:,} held back"


def _evolving_text(state: dict[str, Any]) -> str:
    return f"{state['method']}; {state['records']:,} records, {state['publications']:,} publications"


def _from_policy(context: PageContext) -> None:
    kind = ui.select({k: w for k, w in KINDS.items() if k != "table"}, value="stream", label="Kind").classes("w-full")
    name = ui.input("Name: a-z, 0-9, - and _").classes("w-full")

    async def take_files(event: events.MultiUploadEventArguments) -> None:
        policies, files = await read_policy_files(event)

        def bundle() -> Bundle:
            if len(policies) != 1:
                raise PolicyError(
                    f"There are {len(policies)} policies among the files.",
                    hint="Send one .yaml and the files it names.",
                )
            return parse_policy(policies[0], files)

        await _create(context, kind.value, name.value or "", bundle)

    drop_area(context, "Its policy and the files it names: begins at once", several=True, on_multi_upload=take_files)


async def _create(context: PageContext, kind: str, name: str, bundle: Callable[[], Bundle]) -> None:
    """Begins a source under a policy, and goes to its page."""
    if await run_or_notify(in_thread(lambda: context.hub.create(kind, name, bundle()))) is not None:
        ui.navigate.to(f"{SOURCE_PATHS[kind]}{name}")


def begin_card(context: PageContext, draft: dict[str, Any]) -> None:
    """Begins a source under the policy of a draft."""
    kind = draft["kind"]
    with card(f"Begin {KINDS[kind].partition(':')[0]}"):
        status_text("Its policy stays for life: later records are held to what was promised for the first.")
        name = ui.input("Name: a-z, 0-9, - and _", value=_default_name(context.hub.tables.get(draft["table"])["name"]))
        name.classes("w-full")

        def go() -> Awaitable[None]:
            return _create(context, kind, name.value or "", lambda: context.hub.bundle(draft["policy_hash"]))

        ui.button("Begin", icon="play_arrow", on_click=go).props("size=lg")
        hint_text("It begins empty: the sample was tried and is not released. Its page takes the records.")


def _default_name(name: str) -> str:
    stem = name.rpartition(".")[0] or name
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem.lower()).strip("-_")[:60]
