"""Every error Reticent raises on purpose.

    ReticentError
    ├── PolicyError      the policy or the call is wrong                     exit 2
    ├── DataError        the data cannot be read, or does not fit the policy exit 3
    ├── GuaranteeError   the policy cannot be met; nothing is published      exit 4
    ├── StateError       the store, a snapshot or the ledger                 exit 5
    ├── ConnectorError   a source or a sink                                  exit 5
    ├── UnwantedError    the work was cancelled; nothing is published        exit 1
    └── InternalError    this is a bug                                       exit 1

Messages name columns, places and counts, and say what to do next. They never show a cell of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

CORRUPT_HINT = (
    "Nothing was published. Run `reticent store check`, then go on from a backup with `reticent store restore`: "
    "it knows what the world has seen, a copied file does not."
)
"""What to do about anything in a store that is not as it was written."""


class ReticentError(Exception):
    """Root of the tree; carries a hint and the exit code of the command line."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class PolicyError(ReticentError):
    """The policy, or the way it is called, is wrong."""

    exit_code = 2


class DataError(ReticentError):
    """The data cannot be read or does not fit the policy."""

    exit_code = 3


class GuaranteeError(ReticentError):
    """The policy cannot be met; nothing was published."""

    exit_code = 4


class StateError(ReticentError):
    """The store, a snapshot or the ledger is missing, damaged or of another policy."""

    exit_code = 5


class ConnectorError(ReticentError):
    """A source or a sink failed."""

    exit_code = 5


class WorkCancelledError(ReticentError):
    """The work was cancelled; nothing was published."""


class InternalError(ReticentError):
    """An invariant of Reticent itself broke: a bug, never the user's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="This is a bug in Reticent; nothing was published. Please report it.")


@contextmanager
def require_extra(what: str, extra: str) -> Iterator[None]:
    """Names the extra that brings a package which only some need, where an import within fails."""
    try:
        yield
    except ImportError:
        raise ConnectorError(f"{what}.", hint=f"Install it: pip install 'reticent[{extra}]'.") from None
