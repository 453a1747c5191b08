"""Work: the load of the server: its writer, streams and jobs."""

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
    """Draw the page."""
    with card("The writer"):
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-4 gap-4"):
            labels = {name: figure(name) for name in ("changes waiting", "changes per commit", "commits", "open jobs")}
        status_text(
            "One thread writes all changes. A waiting change is not stored yet, and its sender has no answer yet."
        )
    body = ui.column().classes("w-full gap-4")

    async def refresh() -> None:
        hub = context.hub
        jobs = await in_thread(hub.jobs.all)
        drafts_by_job = await in_thread(lambda: drafts.by_job(hub))
        streams = [stream.status() | {"subscribers": len(stream.subscribers)} for stream in hub.streams.values()]
        open_jobs = [job for job in jobs if job["state"] in OPEN_STATES]
        if body.is_deleted:
            return
        per_commit = hub.writer.steps / max(1, hub.writer.groups)
        values = (f"{hub.writer.waiting:,}", f"{per_commit:.1f}", f"{hub.writer.groups:,}", f"{len(open_jobs):,}")
        for label, value in zip(labels.values(), values, strict=True):
            label.set_text(value)
        body.clear()
        with body:
            _streams(streams)
            _jobs(context, jobs, drafts_by_job)

    await refresh()
    ui.timer(2.0, refresh)


def _streams(streams: list[dict[str, Any]]) -> None:
    with card("Streams: time from arrival to commit"):
        if not streams:
            status_text("There are no streams.")
            return
        rows = [
            [
                one["name"],
                "stopped" if one["stopped"] else "taking records",
                f"{one['rows_per_second']:,.0f}",
                f"{one['median_ms']:.1f}",
                f"{one['p99_ms']:.1f}",
                f"{one['pending']:,}",
                f"{one['subscribers']:,}",
            ]
            for one in streams
        ]
        headers = ("Stream", "State", "Records per second", "Median, ms", "99% within, ms", "Pending", "Subscribers")
        data_table(headers, rows)


def _jobs(context: PageContext, jobs: list[dict[str, Any]], drafts_by_job: dict[str, dict[str, Any]]) -> None:
    with card("Jobs, newest first"):
        if not jobs:
            status_text("There are no jobs yet.")
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
