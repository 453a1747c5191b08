"""Errors in one shape: {"error": {"code", "message", "hint"}}. Nothing in it quotes the data."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from reticent.errors import (
    ConnectorError,
    DataError,
    GuaranteeError,
    InternalError,
    PolicyError,
    ReticentError,
    StateError,
)

LOG = logging.getLogger(__name__)


class ServiceError(ReticentError):
    """An error of the service itself: a status, a code and words."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code


class ErrorBody(BaseModel):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str = ""


class ErrorReply(BaseModel):
    """The one shape of errors."""

    error: ErrorBody


_STATUS: list[tuple[type[ReticentError], int, str]] = [
    (PolicyError, 422, "policy"),
    (DataError, 422, "data"),
    (GuaranteeError, 409, "guarantee"),
    (InternalError, 500, "bug"),
    (StateError, 503, "store"),
    (ConnectorError, 503, "connector"),
]
_WORDS = {
    401: "token",
    403: "role",
    404: "not-found",
    405: "method",
    408: "timeout",
    413: "too-large",
    415: "content-type",
    429: "rate",
}


def reply(status: int, code: str, message: str, hint: str = "", headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as a response."""
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status, headers)


def describe(error: Exception) -> tuple[int, str, str, str]:
    """Status, code, message and hint of any exception; the text of a foreign one may quote data and is dropped."""
    if isinstance(error, ServiceError):
        return error.status, error.code, error.message, error.hint
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            return status, code, error.message, error.hint
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f"{Path(last[0].filename).name}:{last[0].lineno}" if last else "unknown place"
    LOG.error("%s at %s", type(error).__name__, place)
    return 500, "bug", f"{type(error).__name__} at {place}; nothing was published.", "This is a bug; please report it."


def response(error: Exception) -> JSONResponse:
    """Any exception as a response."""
    status, code, message, hint = describe(error)
    headers = {"Retry-After": "1"} if status in (429, 503) else None
    return reply(status, code, message, hint, headers)


def install(app: FastAPI) -> None:
    """Makes every error of an app speak this shape."""

    async def ours(_: Request, error: Exception) -> JSONResponse:
        return response(error)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type
        words = {404: "There is no such address.", 405: "This address does not take that method."}
        message = words.get(error.status_code, "The request cannot be served.")
        code = _WORDS.get(error.status_code, "request")
        return reply(error.status_code, code, message, headers=dict(error.headers or {}))

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type
        return reply(422, "request", f"The request does not fit: {_places(error)}.", "See /api/v1/openapi.json.")

    app.add_exception_handler(ReticentError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, ours)


def _places(error: RequestValidationError) -> str:
    """Where and what kind of mistake, never the value that was sent."""
    said = [f"{_place(item['loc'])} ({item['type']})" for item in error.errors()[:5]]
    return ", ".join(dict.fromkeys(said))


def _place(at: tuple[Any, ...]) -> str:
    # Below the first two parts a location holds names the client chose.
    return ".".join(str(part) for part in at[:2])
