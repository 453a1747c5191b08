"""The ASGI app: the API under /api/v1 and the studio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI

from reticent.service import problems, routes
from reticent.service.access import Access
from reticent.service.guard import Guard
from reticent.service.hub import Hub
from reticent.service.oidc import Oidc
from reticent.service.problems import redact_logger
from reticent.service.routes.feeds import FastPush
from reticent.store import Store

if TYPE_CHECKING:
    from reticent.service.settings import Settings

DESCRIPTION = """\
Releases health data that changes over time without disclosing who has which sensitive value.

Send `Authorization: Bearer rt_...`. Roles: `feed` pushes records, `analyst` reads releases, `custodian` may do everything.
All errors have the form `{"error": {"code", "message", "hint"}}`. They never quote the data.
"""


def create_app(settings: Settings) -> FastAPI:
    """Return the app for the store in the settings; it opens the store now and closes it at shutdown."""
    store = Store.open(settings.store)
    store.allow_several_veil_keys = True
    try:
        hub = Hub(store, keep_days=settings.keep_days, keep=settings.keep)
    except BaseException:
        store.close()
        raise

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        hub.close()
        store.close()

    app = FastAPI(
        title="Reticent",
        version=version("reticent"),
        description=DESCRIPTION,
        openapi_url=f"{routes.PREFIX}/openapi.json",
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.settings = settings
    app.state.hub = hub
    app.state.access = Access(settings, hub.tokens)
    app.state.oidc = Oidc(settings.oidc) if settings.oidc else None
    problems.install(app)
    redact_logger("uvicorn.error")
    app.include_router(routes.router())
    if settings.studio:
        from reticent.service.pages import mount

        mount(app)
    app.add_middleware(FastPush)
    app.add_middleware(Guard, settings=settings)
    return app
