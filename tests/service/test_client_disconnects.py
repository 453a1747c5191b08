"""Who hangs up before the answer is no error of ours: nothing is logged, and nothing is raised."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.middleware.base import BaseHTTPMiddleware

from reticent.service.guard import Guard
from reticent.service.problems import RedactingFilter
from reticent.service.settings import Settings

SCOPE = {"type": "http", "path": "/", "method": "POST", "headers": [], "query_string": b""}


async def passing(request, call_next):
    return await call_next(request)


async def silent(_scope, receive, _send):
    """Waits for the body, as a page does, and answers nobody."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def forgetful(_scope, _receive, _send):
    """Answers nobody, though somebody waits."""


def ask(app, *messages):
    sent, coming = [], iter(messages)

    async def receive():
        return next(coming)

    async def send(message):
        sent.append(message)

    guard = Guard(BaseHTTPMiddleware(app, passing), Settings("private.db"))
    with ThreadPoolExecutor(1) as thread:  # a browser's tests leave a loop running in this one
        thread.submit(lambda: asyncio.run(guard(dict(SCOPE), receive, send))).result()
    return sent


def test_a_client_that_is_gone_is_no_error():
    part = {"type": "http.request", "body": b"x", "more_body": True}
    assert ask(silent, part, {"type": "http.disconnect"}) == []


def test_a_request_that_nobody_answers_still_is():
    whole = {"type": "http.request", "body": b"", "more_body": False}
    with pytest.raises(RuntimeError):
        ask(forgetful, whole)


def test_an_answer_that_nobody_takes_is_not_logged():
    def logged(error):
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "", None, (type(error), error, None))
        return RedactingFilter().filter(record)

    assert not logged(RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"))
    assert logged(RuntimeError("another"))
