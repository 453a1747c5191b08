"""Keeps addresses and the words of exceptions out of the log: both may quote data."""

from __future__ import annotations

import logging
from pathlib import Path

_HUNG_UP = "the handler is closed"
"""What the event loop says where a client is gone before its answer is written."""


class Quiet(logging.Filter):
    """Reduces what others log to what went wrong and where."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record may be logged, after its exception was replaced by the name of it."""
        if record.exc_info and record.exc_info[1] is not None:
            if isinstance(record.exc_info[1], RuntimeError) and _HUNG_UP in str(record.exc_info[1]):
                return False
            record.msg, record.args, record.exc_info = named(record.exc_info[1]), None, None
        return "://" not in record.getMessage()


def hush(name: str) -> None:
    """Quiets a logger, once."""
    log = logging.getLogger(name)
    if not any(isinstance(known, Quiet) for known in log.filters):
        log.addFilter(Quiet())


def named(error: BaseException) -> str:
    """An exception by its type and its place."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place is not None else ""
    return f"{type(error).__name__}{where}"
