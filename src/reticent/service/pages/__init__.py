"""The studio: pages for the custodian, served by the same process, with every asset from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI


def mount(app: FastAPI) -> None:
    """Adds the pages to an app."""
    from nicegui import ui

    from reticent.service import kit
    from reticent.service.pages import (  # noqa: F401 - each registers its page
        audit,
        compare,
        data,
        evolving,
        explore,
        history,
        ledger,
        live,
        publish,
        release,
        roles,
        series,
        sources,
        tries,
        work,
    )
    from reticent.service.pages.require_sign_in import RequireSignIn
    from reticent.service.pages.sign_in import router

    app.include_router(router)
    app.include_router(release.router)
    kit.reopen()
    ui.run_with(app, title="Reticent", language="en-US", dark=None, show_welcome_message=False)
    kit.close(app)
    app.add_middleware(RequireSignIn)
