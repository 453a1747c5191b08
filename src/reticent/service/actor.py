"""The actor: the token on whose behalf the current task runs.

A context variable carries the token through the task and its threads, so no page or route has to pass it on.
Work of the server itself has no actor and may access every source.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.service.tokens import Token

_ACTOR: ContextVar[Token | None] = ContextVar("reticent_actor", default=None)


def act_as(token: Token | None) -> None:
    """Set the actor of the current task."""
    _ACTOR.set(token)


def actor() -> Token | None:
    """Return the actor of the current task; None means the server itself."""
    return _ACTOR.get()


def can_access(kind: str, name: str) -> bool:
    """Return whether the actor's scope includes a source."""
    token = actor()
    return token is None or token.can_access(kind, name)
