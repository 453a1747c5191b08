"""The API under /api/v1, one file per kind of thing."""

from fastapi import APIRouter

from reticent.service.routes import audit_log, audits, evolving, health, jobs, releases, series, streams, tables

PREFIX = "/api/v1"


def router() -> APIRouter:
    """All routes."""
    whole = APIRouter(prefix=PREFIX)
    for part in (health, streams, tables, evolving, series, jobs, releases, audits, audit_log):
        whole.include_router(part.router)
    return whole
