"""Errors in one shape: {"error": {"code", "message", "hint"}}. Nothing in it quotes the data, and neither does the log: addresses and the words of exceptions stay out of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

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

_CLIENT_GONE = "the handler is closed"
"""What the event loop says where a client is gone before its answer is written."""


class RedactingFilter(logging.Filter):
    """Reduces what others log to what went wrong and where."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record may be logged, after its exception was replaced by the name of it."""
        if record.exc_info and record.exc_info[1] is not None:
            if isinstance(record.exc_info[1], RuntimeError) and _CLIENT_GONE in str(record.exc_info[1]):
                return False
            record.msg, record.args, record.exc_info = error_location(record.exc_info[1]), None, None
        return "://" not in record.getMessage()


def redact_logger(name: str) -> None:
    """Quiets a logger, once."""
    log = logging.getLogger(name)
    if not any(isinstance(known, RedactingFilter) for known in log.filters):
        log.addFilter(RedactingFilter())


def error_location(error: BaseException) -> str:
    """An exception by its type and its place."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place is not None else ""
    return f"{type(error).__name__}{where}"


LOG = logging.getLogger(__name__)


class ServiceError(ReticentError):
    """An error of the service itself: a status, a code and words."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code

    @property
    def body(self) -> dict[str, str]:
        """As clients and jobs are told it."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, str, str, str]]:
        """An error may come from another process."""
        return ServiceError, (self.status, self.code, self.message, self.hint)


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
_HTTP_MESSAGES = {
    404: ("not-found", "There is no such address."),
    405: ("method", "This address does not take that method."),
}


def to_service_error(error: Exception) -> ServiceError:
    """Any exception as one of ours; the text of a foreign one may quote data and is dropped."""
    if isinstance(error, ServiceError):
        return error
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            return ServiceError(status, code, error.message, error.hint)
    words = error_location(error)
    LOG.error("%s", words)
    return ServiceError(500, "bug", f"{words}; nothing was published.", "This is a bug; please report it.")


def response(error: Exception, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Any exception as a response."""
    problem = to_service_error(error)
    again = {"Retry-After": "1"} if problem.status in (429, 503) else {}
    return JSONResponse({"error": problem.body}, problem.status, again | dict(headers or {}))


def install(app: FastAPI) -> None:
    """Makes every error of an app speak this shape."""

    async def ours(_: Request, error: Exception) -> JSONResponse:
        return response(error)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type
        code, message = _HTTP_MESSAGES.get(error.status_code, ("request", "The request cannot be served."))
        return response(ServiceError(error.status_code, code, message), error.headers)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type
        # Where and what kind of mistake, never the value that was sent: below its first two parts a location holds names the client chose.
        places = [f"{'.'.join(map(str, item['loc'][:2]))} ({item['type']})" for item in error.errors()[:5]]
        words = f"The request does not fit: {', '.join(dict.fromkeys(places))}."
        return response(ServiceError(422, "request", words, "See /api/v1/openapi.json."))

    app.add_exception_handler(ReticentError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, ours)
