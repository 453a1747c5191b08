"""All errors that Reticent raises deliberately.

    ReticentError
    ├── PolicyError      the policy or the call is wrong                     exit 2
    ├── DataError        the data cannot be read, or does not fit the policy exit 3
    ├── GuaranteeError   the policy cannot be met; nothing is published      exit 4
    ├── StateError       the store, a snapshot or the ledger                 exit 5
    ├── ConnectorError   a source or a sink                                  exit 5
    ├── UnwantedError    the work was cancelled; nothing is published        exit 1
    └── InternalError    this is a bug                                       exit 1

Messages name columns, files and counts, and say what to do next. They never contain a cell of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

CORRUPT_HINT = (
    "Nothing was published. Run `reticent store check`, then restore a backup with `reticent store restore`. "
    "Do not copy a backup over the store: the same people could be published again."
)
"""What to do about a corrupt store."""


class ReticentError(Exception):
    """Base class of all errors, with a hint and the exit code of the command line."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class PolicyError(ReticentError):
    """The policy or the call is wrong."""

    exit_code = 2


class DataError(ReticentError):
    """The data cannot be read or does not fit the policy."""

    exit_code = 3


class GuaranteeError(ReticentError):
    """The policy cannot be met; nothing was published."""

    exit_code = 4


class StateError(ReticentError):
    """The store, a snapshot or the ledger is missing, corrupt or of another policy."""

    exit_code = 5


class ConnectorError(ReticentError):
    """A source or a sink failed."""

    exit_code = 5


class WorkCancelledError(ReticentError):
    """The work was cancelled; nothing was published."""


class InternalError(ReticentError):
    """An internal check of Reticent failed: a bug, never the user's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="Report this bug in Reticent. Nothing was published.")


@contextmanager
def require_extra(what: str, extra: str) -> Iterator[None]:
    """Name the extra to install if an import within the block fails."""
    try:
        yield
    except ImportError:
        raise ConnectorError(f"{what}.", hint=f"Install it: pip install 'reticent[{extra}]'.") from None
