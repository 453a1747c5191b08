"""The API under /api/v1, one file per kind of thing."""

from fastapi import APIRouter

from reticent.service.routes import audits, evolving, health, jobs, releases, series, streams, tables, trail

PREFIX = "/api/v1"


def router() -> APIRouter:
    """All routes."""
    whole = APIRouter(prefix=PREFIX)
    for part in (health, streams, tables, evolving, series, jobs, releases, audits, trail):
        whole.include_router(part.router)
    return whole
