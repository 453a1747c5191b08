"""Signing in to the studio with a token: plain pages that need no script."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reticent.service.access import COOKIE
from reticent.service.problems import ServiceError

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
<p><small>A custodian makes tokens with <code>reticent token create</code>.</small></p></form></body></html>"""


def _page(message: str = "", status: int = 200) -> HTMLResponse:
    words = f'<p class="wrong" role="alert">{escape(message)}</p>' if message else ""
    return HTMLResponse(_PAGE.format(message=words), status)


@router.get("/sign-in")
async def sign_in_page() -> Response:
    """The form."""
    return _page()


@router.post("/sign-in")
async def sign_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Begins a session; the cookie is kept from scripts and from other sites."""
    access, settings = request.app.state.access, request.app.state.settings
    try:
        key = access.sign_in(request, token)
    except ServiceError as error:
        return _page(f"{error.message} {error.hint}", error.status)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE, key, max_age=int(settings.session), httponly=True, samesite="strict", secure=settings.secure
    )
    return answer


@router.post("/sign-in/out")
async def sign_out(request: Request) -> Response:
    """Ends the session."""
    request.app.state.access.sign_out(request)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer
