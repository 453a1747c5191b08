"""Request and response bodies of several routes, and their descriptions for OpenAPI."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reticent.policy.bundle import Bundle
from reticent.service.hub import NAME_PATTERN, Hub
from reticent.service.policy_registry import parse_policy
from reticent.service.problems import ErrorReply
from reticent.service.routes.common import in_thread


class PolicyBody(BaseModel):
    """A policy as an object or as the text of a YAML file, with the files that it names."""

    model_config = ConfigDict(extra="forbid")
    policy: dict[str, Any] | str = Field(description="See `reticent policy schema`.")
    files: dict[str, str] = Field(
        default_factory=dict, description="File name -> text, for each file that the policy names."
    )

    def bundle(self) -> Bundle:
        """Return the policy and its files as a bundle."""
        return parse_policy(self.policy, self.files)


class NewSource(PolicyBody):
    """A stream, an evolving table or a series to create."""

    name: str = Field(pattern=f"^{NAME_PATTERN}$")


class SourceInfo(BaseModel):
    """A new source."""

    name: str
    policy_hash: str


async def create_source(kind: str, body: NewSource, hub: Hub) -> SourceInfo:
    """Create a source of a kind."""
    policy = await in_thread(lambda: hub.create(kind, body.name, body.bundle()))
    return SourceInfo(name=body.name, policy_hash=policy.hash)


class Job(BaseModel):
    """Long work; poll it until its state is done, failed, cancelled or parked."""

    id: str
    created: str
    kind: str
    source: str
    state: str
    progress: float
    stage: str
    release: str | None = None
    error: dict[str, str] | None = None


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route for the OpenAPI document."""
    words = {
        400: "The request is malformed",
        401: "No valid token",
        403: "The role or the scope of the token does not allow this",
        404: "Not found",
        408: "The body did not arrive in time",
        409: "The name exists, the key was used, or the policy cannot be met",
        410: "Deleted or withdrawn",
        413: "The body is too large",
        415: "The content type is not supported",
        422: "The request, the policy or the data is invalid",
        429: "Too many requests",
        503: "The server is too busy or cannot reach its store; send the request again with the same key",
    }
    always = (400, 401, 403, 408, 413, 422, 429, 503)
    return {status: {"model": ErrorReply, "description": words[status]} for status in sorted({*always, *statuses})}


def text_responses(media: str, *statuses: int, binary: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route whose content type is not JSON."""
    schema = {"type": "string"} | ({"format": "binary"} if binary else {})
    return {**errors(*statuses), 200: {"content": {media: {"schema": schema}}}}


def raw_body(*kinds: str) -> dict[str, Any]:
    """Describe a raw body for the OpenAPI document."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}
