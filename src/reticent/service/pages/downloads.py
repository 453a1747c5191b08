"""Files for a browser, sent piece by piece from disk: an answer to an address of their own, not a message of a page."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from reticent.service.pages.layout import visit_of
from reticent.service.problems import described
from reticent.service.routes.common import Ident
from reticent.service.routes.releases import sent

router = APIRouter(include_in_schema=False)


@router.get("/release/{ident}/{file_format}.zip")
async def release(ident: Ident, file_format: Literal["csv", "parquet"], request: Request) -> Response:
    """The folder of a release."""
    try:
        return await sent(visit_of(request).hub, ident, file_format)
    except Exception as error:  # noqa: BLE001 - it is told, not raised
        problem = described(error)
        return PlainTextResponse(f"{problem.message} {problem.hint}", problem.status)
