"""Work: how far behind the server is: jobs, the writer, and each stream's way to disk."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from reticent.service.jobs import OPEN_STATES
from reticent.service.pages import drafts
from reticent.service.pages.layout import (
    PageContext,
    card,
    figure,
    format_time,
    hint_text,
    run_or_notify,
    status_text,
    studio_page,
)
from reticent.service.pages.safe_elements import data_table, set_label
from reticent.service.routes.common import in_thread

_MAX_JOBS = 30
_KIND_LABELS = {"draft": "draft", "table": "table", "evolving": "evolving table", "series": "series"}


@studio_page("/work", "Work")
async def work(context: PageContext) -> None:
    """The page."""
    with card("The writer"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            shown = {name: figure(name) for name in ("changes waiting", "changes a commit", "commits", "jobs open")}
        status_text(
            "One thread writes for all; a change that waits is not on disk yet, and nobody has been told that it is."
        )
    body = ui.column().classes("w-full gap-4")

    async def look() -> None:
        hub = context.hub
        jobs = await in_thread(hub.jobs.all)
        tried = await in_thread(lambda: drafts.by_job(hub))
        streams = [stream.status() | {"subscribers": len(stream.subscribers)} for stream in hub.streams.values()]
        waiting = [job for job in jobs if job["state"] in OPEN_STATES]
        if body.is_deleted:
            return
        each = hub.writer.steps / max(1, hub.writer.groups)
        values = (f"{hub.writer.waiting:,}", f"{each:.1f}", f"{hub.writer.groups:,}", f"{len(waiting):,}")
        for label, value in zip(shown.values(), values, strict=True):
            label.set_text(value)
        body.clear()
        with body:
            _streams(streams)
            _jobs(context, jobs, tried)

    await look()
    ui.timer(2.0, look)


def _streams(streams: list[dict[str, Any]]) -> None:
    with card("Streams: from arrival to disk"):
        if not streams:
            status_text("There is no stream.")
            return
        rows = [
            [
                one["name"],
                "stopped" if one["stopped"] else "taking records",
                f"{one['rows_per_second']:,.0f}",
                f"{one['median_ms']:.1f}",
                f"{one['p99_ms']:.1f}",
                f"{one['withheld']:,}",
                f"{one['subscribers']:,}",
            ]
            for one in streams
        ]
        heads = ("Stream", "State", "Records a second", "Median, ms", "99% within, ms", "Held back", "Readers now")
        data_table(heads, rows)


def _jobs(context: PageContext, jobs: list[dict[str, Any]], drafts_by_job: dict[str, dict[str, Any]]) -> None:
    with card("Jobs, the newest first"):
        if not jobs:
            status_text("Nothing was asked for yet.")
        for job in jobs[:_MAX_JOBS]:
            with ui.row().classes("w-full items-center gap-3"):
                with ui.column().classes("gap-0 grow"):
                    name = f": {drafts_by_job[job['id']]['name']}" if job["id"] in drafts_by_job else ""
                    ui.label(f"{_KIND_LABELS.get(job['kind'], job['kind'])} {job['source']}{name}")
                    error = f": {job['error']['message']}" if job["error"] else ""
                    hint_text(f"{format_time(job['created'])}, {job['stage']}{error}")
                if job["id"] in drafts_by_job:
                    ui.link("Drafts", f"/drafts?table={drafts_by_job[job['id']]['table']}")
                if job["release"]:
                    ui.link("Release", f"/release?id={job['release']}")
                if job["state"] in OPEN_STATES:
                    cancel = ui.button("Cancel", on_click=lambda _, ident=job["id"]: _cancel(context, ident))
                    set_label(cancel, f"Cancel {job['source']}").props("flat dense no-caps")


async def _cancel(context: PageContext, ident: str) -> None:
    await run_or_notify(in_thread(lambda: context.hub.jobs.cancel(ident)))
