"""Sources: the streams, evolving tables and series of this server, and the creation of a new one."""

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
    """Draw the page."""
    hub = context.hub
    rows = [("stream", name, _stream_text(one.status())) for name, one in sorted(hub.streams.items())]
    rows += [("evolving", n, _evolving_text(await in_thread(one.status))) for n, one in sorted(hub.evolving.items())]
    for name, one in sorted(hub.series.items()):
        ledger = await in_thread(partial(one.store.ledger, one.name))
        rows.append(("series", name, f"{one.policy.series.method}; {len(ledger):,} releases"))
    with card("Streams, evolving tables and series"):
        if not rows:
            status_text("There are no sources yet.")
        for kind, name, words in rows:
            with ui.column().classes("gap-0 w-full"):
                ui.link(f"{KINDS[kind].partition(':')[0]}: {name}", f"{SOURCE_PATHS[kind]}{name}").classes(
                    "font-medium"
                )
                hint_text(words)
    with card("Create a source"):
        with ui.row().classes("items-center gap-1"):
            ui.label("From data: set the roles, choose the kind of release and make drafts.").classes("r-muted")
            ui.link("Upload a sample", "/")
        ui.label("Or from a policy:").classes("r-muted")
        _from_policy(context)


def _stream_text(state: dict[str, Any]) -> str:
    words = "stopped" if state["stopped"] else "taking records"
    return f"{state['method']}; {words}; {state['input']:,} records so far, {state['pending']:,} pending"


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
                    f"The upload has {len(policies)} policies.",
                    hint="Upload one .yaml file and the files that it names.",
                )
            return parse_policy(policies[0], files)

        await _create(context, kind.value, name.value or "", bundle)

    drop_area(
        context,
        "Policy and the files that it names: creates the source at once",
        several=True,
        on_multi_upload=take_files,
    )


async def _create(context: PageContext, kind: str, name: str, bundle: Callable[[], Bundle]) -> None:
    """Create a source under a policy and open its page."""
    if await run_or_notify(in_thread(lambda: context.hub.create(kind, name, bundle()))) is not None:
        ui.navigate.to(f"{SOURCE_PATHS[kind]}{name}")


def begin_card(context: PageContext, draft: dict[str, Any]) -> None:
    """Draw the form that creates a source under the policy of a draft."""
    kind = draft["kind"]
    with card(f"Create {KINDS[kind].partition(':')[0]}"):
        status_text("The policy of a source cannot change: its guarantee covers all records from the first one on.")
        name = ui.input("Name: a-z, 0-9, - and _", value=_default_name(context.hub.tables.get(draft["table"])["name"]))
        name.classes("w-full")

        def go() -> Awaitable[None]:
            return _create(context, kind, name.value or "", lambda: context.hub.bundle(draft["policy_hash"]))

        ui.button("Create", icon="play_arrow", on_click=go).props("size=lg")
        hint_text("The source starts empty: the sample of the draft is not released. Push records on its page.")


def _default_name(name: str) -> str:
    stem = name.rpartition(".")[0] or name
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem.lower()).strip("-_")[:60]
