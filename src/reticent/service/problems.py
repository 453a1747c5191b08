"""Error answers of the form {"error": {"code", "message", "hint"}}. Neither they nor the log quote data or addresses."""

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
"""Part of the event loop's message if a client disconnects before its answer is written."""


class RedactingFilter(logging.Filter):
    """Reduces log records of libraries to the type and the location of an error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the exception of a record by its type and return whether to log the record."""
        if record.exc_info and record.exc_info[1] is not None:
            if isinstance(record.exc_info[1], RuntimeError) and _CLIENT_GONE in str(record.exc_info[1]):
                return False
            record.msg, record.args, record.exc_info = error_location(record.exc_info[1]), None, None
        return "://" not in record.getMessage()


def redact_logger(name: str) -> None:
    """Add the filter to a logger, once."""
    log = logging.getLogger(name)
    if not any(isinstance(known, RedactingFilter) for known in log.filters):
        log.addFilter(RedactingFilter())


def error_location(error: BaseException) -> str:
    """Return the type and the location of an exception."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place is not None else ""
    return f"{type(error).__name__}{where}"


LOG = logging.getLogger(__name__)


class ServiceError(ReticentError):
    """An error of the service: an HTTP status, a code, a message and a hint."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code

    @property
    def body(self) -> dict[str, str]:
        """The error as clients and jobs get it."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, str, str, str]]:
        """Let the error be sent from another process."""
        return ServiceError, (self.status, self.code, self.message, self.hint)


class ErrorBody(BaseModel):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str = ""


class ErrorReply(BaseModel):
    """The form of all error answers."""

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
    405: ("method", "This address does not accept this HTTP method."),
}


def to_service_error(error: Exception) -> ServiceError:
    """Convert any exception to a ServiceError; the text of a foreign exception may quote data and is dropped."""
    if isinstance(error, ServiceError):
        return error
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            return ServiceError(status, code, error.message, error.hint)
    location = error_location(error)
    LOG.error("%s", location)
    return ServiceError(500, "bug", f"{location}; nothing was published.", "This is a bug; please report it.")


def response(error: Exception, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response to any exception."""
    problem = to_service_error(error)
    again = {"Retry-After": "1"} if problem.status in (429, 503) else {}
    return JSONResponse({"error": problem.body}, problem.status, again | dict(headers or {}))


def install(app: FastAPI) -> None:
    """Register the handlers that give all errors of an app this form."""

    async def ours(_: Request, error: Exception) -> JSONResponse:
        return response(error)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type
        code, message = _HTTP_MESSAGES.get(error.status_code, ("request", "The request cannot be served."))
        return response(ServiceError(error.status_code, code, message), error.headers)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type
        # Only the type and the first two parts of the location: deeper parts contain names that the client chose.
        places = [f"{'.'.join(map(str, item['loc'][:2]))} ({item['type']})" for item in error.errors()[:5]]
        words = f"The request is malformed: {', '.join(dict.fromkeys(places))}."
        return response(ServiceError(422, "request", words, "Compare it with /api/v1/openapi.json."))

    app.add_exception_handler(ReticentError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, ours)
