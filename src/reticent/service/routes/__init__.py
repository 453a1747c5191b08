"""The API under /api/v1, one module per resource."""

from fastapi import APIRouter

from reticent.service.routes import audit_log, audits, evolving, health, jobs, releases, series, streams, tables

PREFIX = "/api/v1"


def router() -> APIRouter:
    """Return the router of all routes."""
    routes = APIRouter(prefix=PREFIX)
    for part in (health, streams, tables, evolving, series, jobs, releases, audits, audit_log):
        routes.include_router(part.router)
    return routes
