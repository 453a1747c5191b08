"""Signing in through a provider: a real one on loopback, the whole code flow, and answers that do not fit."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlparse

import httpx
import pytest
from serving import InThread

from reticent.errors import PolicyError
from reticent.service import oidc as oidc_module
from reticent.service.access import COOKIE
from reticent.service.oidc import OidcSettings

pytest.importorskip("authlib")
mock = pytest.importorskip("oidc_provider_mock")
pytestmark = pytest.mark.filterwarnings("ignore")  # the provider is a package of its own, with warnings of its own
USERS = {
    "reed": {"groups": ["privacy"], "name": "Dr. Reed"},
    "ana": {"groups": ["research", "sport"], "name": "Ana"},
    "eve": {"groups": ["sport"]},
    "bob": {},
    "nil": {"groups": None},
    "odd": {"groups": {"privacy": 1}},
    "slot_length": {"groups": 5},
    "mal": {"groups": ["research"], "name": "<img src=x onerror=alert(1)>\n\u202eAna"},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    users = [mock.User(sub=sub, claims=claims) for sub, claims in USERS.items()]
    with mock.run_server_in_thread(user_claims=users) as provider:
        settings = OidcSettings(
            issuer=f"http://localhost:{provider.server_port}",
            client_id="reticent",
            client_secret="secret",  # noqa: S106
            address="http://127.0.0.1:1",  # replaced below, when the port is known
            roles={"custodian": ["privacy"], "analyst": ["research"]},
            scope={"research": ["series:patients"]},
        )
        running = InThread(tmp_path_factory.mktemp("oidc"), studio=True, wrong_token_rate=1e9, oidc=settings)
        object.__setattr__(settings, "address", running.root)
        yield running
        running.close()


def back(running: InThread, browser: httpx.Client, user: str) -> str:
    """Goes to the provider as a browser does and signs in there; the address it sends the browser back to."""
    there = browser.get(f"{running.root}/sign-in/oidc").headers["location"]
    asked = parse_qs(urlparse(there).query)
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    return browser.post(there, data={"sub": user}).headers["location"]


@contextlib.contextmanager
def signed_in(running: InThread, user: str) -> Iterator[tuple[httpx.Client, httpx.Response]]:
    with httpx.Client(timeout=60) as browser:
        yield browser, browser.get(back(running, browser, user))


@pytest.mark.parametrize(("user", "role"), [("reed", "custodian"), ("ana", "analyst")])
def test_a_group_becomes_a_role(running, user, role):
    with signed_in(running, user) as (browser, answer):
        assert answer.status_code == 200
        assert 'url=/"' in answer.text
        cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(COOKIE))
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert browser.get(f"{running.root}/history").status_code == 200
        entry = running.hub.audit_log.entries(running.hub.audit_log.head()["entries"] - 2)[0]
        assert (entry["action"], entry["name"], entry["role"]) == ("sign-in", USERS[user]["name"], role)
        assert user not in entry["actor"]
        visitor = running.app.state.access._sessions[browser.cookies[COOKIE]].credential
        assert visitor.scope == (() if role == "custodian" else ("series:patients",))
        browser.post(f"{running.root}/sign-in/out")
        assert browser.get(f"{running.root}/history").status_code == 303


def test_a_name_is_shown_as_words(running):
    with signed_in(running, "mal") as (_, answer):
        assert answer.status_code == 200
    entry = running.hub.audit_log.entries(running.hub.audit_log.head()["entries"] - 2)[0]
    assert entry["name"] == "<img src=x onerror=alert(1)>  Ana"
    with signed_in(running, "reed") as (browser, _):
        assert "<img src=x" not in browser.get(f"{running.root}/trail").text


@pytest.mark.parametrize("user", ["eve", "bob", "nil", "odd", "slot_length"])
def test_nobody_without_a_group_gets_in(running, user):
    with signed_in(running, user) as (browser, answer):
        assert answer.status_code == 403
        assert COOKIE not in browser.cookies


def test_an_answer_fits_one_browser_once_and_in_time(running, monkeypatch):
    with httpx.Client(timeout=60) as browser, httpx.Client(timeout=60) as other:
        address = back(running, browser, "reed")
        assert other.get(address).status_code == 401  # another browser, which began nothing
        wrong = re.sub(r"state=[^&]+", "state=x", address)
        assert browser.get(wrong).status_code == 401
        assert browser.get(address).status_code == 401  # what was begun is over
        address = back(running, browser, "reed")
        assert browser.get(address).status_code == 200
        assert browser.get(address).status_code == 401
        monkeypatch.setattr(oidc_module, "_SIGN_IN_SECONDS", -1.0)
        assert browser.get(f"{running.root}/sign-in/callback").status_code == 401
    monkeypatch.undo()
    with httpx.Client(timeout=60) as browser:
        address = back(running, browser, "reed")
        later = oidc_module.time.monotonic() + 601
        monkeypatch.setattr(oidc_module.time, "monotonic", lambda: later)
        assert browser.get(address).status_code == 401


@pytest.mark.parametrize("check", [{"client_id": "another"}, {"issuer": "http://localhost:1"}])
def test_a_statement_for_others_is_refused(running, monkeypatch, check):
    """The same statement, signed by the provider, read by a service that expects another issuer or audience."""
    with httpx.Client(timeout=60) as browser:
        address = back(running, browser, "reed")
        settings = running.app.state.oidc._settings
        before = {name: getattr(settings, name) for name in check}
        for name, value in check.items():
            object.__setattr__(settings, name, value)
        try:
            assert browser.get(address).status_code == 401
        finally:
            for name, value in before.items():
                object.__setattr__(settings, name, value)


def test_a_session_ends(running, monkeypatch):
    with signed_in(running, "reed") as (browser, _):
        from reticent.service import access

        later = access.time.monotonic() + oidc_module.SESSION + 1
        monkeypatch.setattr(access.time, "monotonic", lambda: later)
        assert browser.get(f"{running.root}/history").status_code == 303


def test_a_provider_that_is_away_is_said(tmp_path):
    settings = OidcSettings("http://localhost:1", "reticent", "secret", "http://127.0.0.1:1", {"analyst": ["x"]})
    running = InThread(tmp_path, studio=True, oidc=settings)
    try:
        answer = httpx.get(f"{running.root}/sign-in/oidc", timeout=60)
        assert answer.status_code == 503
        assert "cannot be reached" in answer.text
    finally:
        running.close()


GOOD = "issuer: https://id.example\nclient_id: r\nclient_secret_file: secret\naddress: https://r.example\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        GOOD,
        GOOD + "roles: {king: [a]}\n",
        GOOD + "roles: {analyst: [a]}\nscope: {a: [x]}\n",
        GOOD.replace("https://id", "http://id") + "roles: {analyst: [a]}\n",
        GOOD.replace("https://r.", "http://r.") + "roles: {analyst: [a]}\n",
        GOOD.replace("secret\n", "missing\n") + "roles: {analyst: [a]}\n",
        GOOD + "roles: {analyst: [a]}\nunknown: 1\n",
        GOOD + "roles: {custodian: admins}\n",  # its letters would be groups
    ],
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path, text):
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "oidc.yaml").write_text(text)
    with pytest.raises(PolicyError) as error:
        OidcSettings.read(tmp_path / "oidc.yaml")
    assert "s3cret" not in str(error.value)


def test_settings_are_read(tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "oidc.yaml").write_text(GOOD + "roles: {analyst: [a]}\n")
    settings = OidcSettings.read(tmp_path / "oidc.yaml")
    assert settings.client_secret == "s3cret"  # noqa: S105
    assert "s3cret" not in repr(settings)
