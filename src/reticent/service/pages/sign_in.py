"""Signing in to the studio with a token: plain pages that need no script."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reticent.service.access import COOKIE
from reticent.service.oidc import COOKIE as OIDC_COOKIE
from reticent.service.oidc import SESSION
from reticent.service.problems import ServiceError
from reticent.service.routes.common import aside

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in - Reticent</title><style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ display: grid; place-items: center; min-height: 100vh; margin: 0; background: light-dark(#f4f6f8, #12181d); }}
form {{ width: min(24rem, 90vw); padding: 2rem; border-radius: .75rem; background: light-dark(#fff, #1c252c);
  box-shadow: 0 1px 6px rgb(0 0 0 / .2); display: grid; gap: 1rem; box-sizing: border-box; }}
h1 {{ margin: 0; font-size: 1.4rem; }} p {{ margin: 0; line-height: 1.4; }}
input, button {{ font: inherit; padding: .7rem; border-radius: .4rem; border: 1px solid #6b7a86; }}
button {{ background: #0b5a6b; color: #fff; border: 0; cursor: pointer; }}
.wrong {{ color: light-dark(#a3200d, #ff9d8a); }}
</style></head><body><form method="post" action="/sign-in">
<h1>Reticent</h1><p>Sign in with a custodian's or an analyst's token.</p>{message}
<label for="token">Token</label><input id="token" name="token" type="password" autocomplete="off" required autofocus>
<button type="submit">Sign in</button>
<p><small>A custodian makes tokens with <code>reticent token create</code>.</small></p>{other}</form></body></html>"""
_PROVIDER = '<p><a href="/sign-in/oidc">Sign in with the house\'s account</a></p>'
# The cookie is kept from requests that another site began, the way back from the provider among them: this page begins anew.
_ON = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><a href="/">To the studio</a>'


def _page(request: Request, error: ServiceError | None = None) -> HTMLResponse:
    words = f'<p class="wrong" role="alert">{escape(f"{error.message} {error.hint}")}</p>' if error else ""
    page = _PAGE.format(message=words, other=_PROVIDER if request.app.state.oidc else "")
    return HTMLResponse(page, error.status if error else 200)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form."""
    return _page(request)


@router.post("/sign-in")
async def sign_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Begins a session; the cookie is kept from scripts and from other sites."""
    try:
        key = request.app.state.access.sign_in(request, token)
    except ServiceError as error:
        return _page(request, error)
    return await _let_in(request, key, RedirectResponse("/", 303))


async def _let_in(request: Request, key: str, answer: Response) -> Response:
    await aside(partial(request.app.state.hub.note, "sign-in", "studio"))
    settings = request.app.state.settings
    answer.set_cookie(
        COOKIE, key, max_age=int(settings.session), httponly=True, samesite="strict", secure=settings.secure
    )
    return answer


@router.get("/sign-in/oidc")
async def to_provider(request: Request) -> Response:
    """Sends the visitor to the provider."""
    if request.app.state.oidc is None:
        return RedirectResponse("/sign-in", 303)
    try:
        answer: Response = await request.app.state.oidc.begin(request)
    except ServiceError as error:
        return _page(request, error)
    return answer


@router.get("/sign-in/callback")
async def from_provider(request: Request) -> Response:
    """Takes the visitor back."""
    if request.app.state.oidc is None:
        return RedirectResponse("/sign-in", 303)
    try:
        visitor = await request.app.state.oidc.finish(request)
    except ServiceError as error:
        return _page(request, error)
    key = request.app.state.access.admit(visitor, SESSION)
    answer = await _let_in(request, key, HTMLResponse(_ON))
    answer.delete_cookie(OIDC_COOKIE)
    return answer


@router.post("/sign-in/out")
async def sign_out(request: Request) -> Response:
    """Ends the session."""
    request.app.state.access.sign_out(request)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer
