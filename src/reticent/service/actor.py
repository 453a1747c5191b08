"""Who is acting: the token behind a request, a page or an event, known to everything that is done for it.

It goes along with the task and its threads, so that neither a page nor a route can forget to say who asked. Work of the
server itself, such as a job that goes on in the background, has no actor and may reach everything.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.service.tokens import Token

_ACTOR: ContextVar[Token | None] = ContextVar("reticent_actor", default=None)


def act_as(token: Token | None) -> None:
    """From here on in this task, things are done for this token."""
    _ACTOR.set(token)


def actor() -> Token | None:
    """The token things are done for; None for the server itself."""
    return _ACTOR.get()


def can_access(kind: str, name: str) -> bool:
    """Whether the actor's scope holds a source."""
    token = actor()
    return token is None or token.can_access(kind, name)
