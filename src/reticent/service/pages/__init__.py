"""The studio: pages for custodians and analysts, served by the same process, with all assets from this machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

_PAGES = (
    *("audit", "compare", "data", "evolving", "explore", "history", "ledger", "live", "publish", "release", "roles"),
    *("series", "sources", "drafts_page", "work"),
)


def mount(app: FastAPI) -> None:
    """Add the pages to an app."""
    from nicegui import ui

    from reticent.service import nicegui_setup
    from reticent.service.pages import release, sign_in
    from reticent.service.pages.require_sign_in import RequireSignIn

    for name in _PAGES:
        import_module(f"{__name__}.{name}")  # each registers its page
    app.include_router(sign_in.router)
    app.include_router(release.router)
    nicegui_setup.reset()
    ui.run_with(app, title="Reticent", language="en-US", dark=None, show_welcome_message=False)
    nicegui_setup.secure(app)
    app.add_middleware(RequireSignIn)
