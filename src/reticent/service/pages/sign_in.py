"""Sign-in to the studio with a token or through the provider: plain pages without scripts."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reticent.service.access import COOKIE
from reticent.service.oidc import COOKIE as OIDC_COOKIE
from reticent.service.oidc import SESSION
from reticent.service.problems import ServiceError
from reticent.service.routes.common import in_thread

router = APIRouter(include_in_schema=False)

_PAGE = Path(__file__).with_name("sign_in.html").read_text(encoding="utf-8")
_PROVIDER_LINK = '<p><a href="/sign-in/oidc">Sign in with your institution\'s account</a></p>'
# Browsers omit the strict cookie after a redirect from another site; this page starts a new request.
_REDIRECT_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><a href="/">To the studio</a>'
)


def _page(request: Request, error: ServiceError | None = None) -> HTMLResponse:
    words = f'<p class="wrong" role="alert">{escape(f"{error.message} {error.hint}")}</p>' if error else ""
    provider = _PROVIDER_LINK if request.app.state.oidc else ""
    page = _PAGE.replace("<!-- message -->", words).replace("<!-- other -->", provider)
    return HTMLResponse(page, error.status if error else 200)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """Return the sign-in form."""
    return _page(request)


@router.post("/sign-in")
async def sign_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Start a session; scripts and other sites cannot use its cookie."""
    try:
        key = request.app.state.access.sign_in(request, token)
    except ServiceError as error:
        return _page(request, error)
    return await _start_session(request, key, RedirectResponse("/", 303))


async def _start_session(request: Request, key: str, answer: Response) -> Response:
    await in_thread(partial(request.app.state.hub.log, "sign-in", "studio"))
    settings = request.app.state.settings
    answer.set_cookie(
        COOKIE, key, max_age=int(settings.session), httponly=True, samesite="strict", secure=settings.secure
    )
    return answer


@router.get("/sign-in/oidc")
async def to_provider(request: Request) -> Response:
    """Redirect the user to the provider."""
    if request.app.state.oidc is None:
        return RedirectResponse("/sign-in", 303)
    try:
        answer: Response = await request.app.state.oidc.begin(request)
    except ServiceError as error:
        return _page(request, error)
    return answer


@router.get("/sign-in/callback")
async def from_provider(request: Request) -> Response:
    """Start a session after the sign-in at the provider."""
    if request.app.state.oidc is None:
        return RedirectResponse("/sign-in", 303)
    try:
        user = await request.app.state.oidc.finish(request)
    except ServiceError as error:
        return _page(request, error)
    key = request.app.state.access.admit(user, SESSION)
    answer = await _start_session(request, key, HTMLResponse(_REDIRECT_PAGE))
    answer.delete_cookie(OIDC_COOKIE)
    return answer


@router.post("/sign-in/out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    request.app.state.access.sign_out(request)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer
