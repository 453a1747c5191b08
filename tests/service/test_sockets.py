"""The studio's socket: whose it is, and where it comes from, at the start and at every event."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Iterator

import httpx
import pyarrow.compute as pc
import pytest
from serving import NDJSON, InThread, feed_policy, lines
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from reticent.datasets import feed
from reticent.service import tokens as tokens_module
from reticent.service.access import COOKIE
from reticent.service.tokens import Role, Tokens

pytest.importorskip("nicegui")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    running = InThread(tmp_path_factory.mktemp("studio"), studio=True, wrong_token_rate=1e9)
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _follow_at_once(monkeypatch):
    monkeypatch.setattr(tokens_module, "_CACHE_SECONDS", 0.0)


@contextlib.contextmanager
def signed_in(studio: InThread, token: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=studio.root) as client:
        assert client.post("/sign-in", data={"token": token}).status_code == 303
        yield client


def page_of(client: httpx.Client, path: str = "/history") -> str:
    return re.search(r"'client_id': '([0-9a-f-]{36})'", client.get(path).text).group(1)


def socket(studio: InThread, client: httpx.Client, page: str, *, origin: str | None = None):
    query = f"EIO=4&transport=websocket&implicit_handshake=true&client_id={page}&tab_id={page}&document_id=d"
    query += "&next_message_id=0"
    address = f"{studio.root.replace('http', 'ws')}/_nicegui_ws/socket.io/?{query}"
    headers = {"Cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    return connect(address, origin=origin or studio.root, additional_headers=headers, open_timeout=5)


def begin(opened) -> str:
    """The packets of a connection: open, then the namespace; what the server says to it."""
    assert opened.recv(5).startswith("0")
    opened.send("40")
    return opened.recv(5)


def ask(opened, page: str) -> None:
    opened.send("42" + json.dumps(["ack", {"client_id": page, "next_message_id": 0}]))


def closed(opened) -> bool:
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        try:
            if opened.recv(0.2).startswith("41"):
                return True
        except TimeoutError:
            continue
        except ConnectionClosed:
            return True
    return False


def test_another_origin_gets_no_socket(studio):
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        for origin in ("https://evil.example", "http://127.0.0.1:1", "null"):
            with pytest.raises(InvalidStatus):
                socket(studio, client, page_of(client), origin=origin)
        with socket(studio, client, page_of(client)) as opened:
            assert begin(opened).startswith("40")


def test_a_socket_without_a_visitor_is_told_to_load_its_page_again(studio):
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        page = page_of(client)
        client.post("/sign-in/out")
        client.cookies.set(COOKIE, "gone")
        with socket(studio, client, page) as opened:
            assert opened.recv(5).startswith("0")
            assert "Implicit handshake failed" in opened.recv(5)  # the kit's word for it
            with pytest.raises(ConnectionClosed):
                opened.recv(5)


@pytest.mark.parametrize("end", ["revoke", "sign out", "revoke and wait"])
def test_an_open_page_loses_its_power_with_its_token(studio, end):
    text, token = Tokens(studio.hub.store).create("short", Role.CUSTODIAN)
    with signed_in(studio, text) as client:
        page = page_of(client)
        with socket(studio, client, page) as opened:
            begin(opened)
            ask(opened, page)
            drained(opened)
            if end != "sign out":
                Tokens(studio.hub.store).revoke(token.id)
                studio.hub.tokens._cache.clear()
            else:
                client.post("/sign-in/out")
            if end == "revoke and wait":  # what the server sends by itself is delayed as well
                with pytest.raises(ConnectionClosed):
                    opened.recv(10)
            else:
                ask(opened, page)
                assert closed(opened)
        assert client.get("/history").status_code == 303


def drained(opened) -> None:
    """Takes what was sent so far; the connection stays."""
    with contextlib.suppress(TimeoutError):
        while True:
            opened.recv(0.5)


def test_a_page_obeys_the_token_it_was_built_for(studio):
    with (
        signed_in(studio, studio.tokens[Role.CUSTODIAN]) as owner,
        signed_in(studio, studio.tokens[Role.ANALYST]) as other,
    ):
        page, own = page_of(owner), page_of(other)
        with socket(studio, other, page) as opened:
            assert begin(opened).startswith("44")  # refused
        with socket(studio, other, own) as opened:
            begin(opened)
            ask(opened, page)
            assert closed(opened)


def test_a_page_takes_files_of_its_owner_alone(studio):
    from nicegui.client import Client

    with (
        signed_in(studio, studio.tokens[Role.CUSTODIAN]) as owner,
        signed_in(studio, studio.tokens[Role.ANALYST]) as other,
    ):
        page = page_of(owner, "/")
        place = next(e for e in Client.instances[page].elements.values() if type(e).__name__ == "Upload")
        where = f"/_nicegui/client/{page}/upload/{place.id}"
        file = {"file": ("a.csv", b"a,b\n1,2\n", "text/csv")}
        before = len(studio.hub.tables.all())
        assert other.post(where, files=file).status_code == 403
        assert httpx.post(studio.root + where, files=file).status_code == 303
        assert len(studio.hub.tables.all()) == before
        assert owner.post(where, files=file).status_code == 200
        deadline = time.monotonic() + 10
        while len(studio.hub.tables.all()) == before:  # the page goes on with it by itself
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_there_is_no_long_polling(studio):
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        assert client.get("/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code == 400


def test_another_site_changes_nothing(studio):
    with signed_in(studio, studio.tokens[Role.CUSTODIAN]) as client:
        evil = {"Origin": "https://evil.example"}
        assert client.post("/sign-in/out", headers=evil).status_code == 403
        assert client.get("/history", headers=evil).status_code == 403
        assert client.get("/history").status_code == 200


def test_a_stranger_wakes_no_page(studio):
    from nicegui.client import Client

    before = set(Client.instances)
    for path in ("/nothing", "/sign-in-x", "/sign-in/x", "/api/x", "/api/v1/x", "/_nicegui/x"):
        answer = httpx.get(studio.root + path)
        assert answer.status_code in (303, 404), path
    assert httpx.get(f"{studio.root}/api/v1/x").json()["error"]["code"] == "not-found"
    assert httpx.delete(f"{studio.root}/api/v1/streams").json()["error"]["code"] == "method"
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        assert client.get("/nothing").status_code == 404
    assert set(Client.instances) <= before


@pytest.mark.parametrize("logger", ["nicegui", "uvicorn.error"])
def test_the_log_has_no_address_and_no_text_of_an_exception(studio, caplog, logger):
    log = logging.getLogger(logger)

    def fail() -> None:
        raise ValueError("Jane Doe, C50")

    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        client.get("/nothing?name=Jane%20Doe")
    log.warning("http://host/x?name=Jane Doe not found")
    try:
        fail()
    except ValueError:
        log.exception("Jane Doe")
    assert "Jane" not in caplog.text
    assert "ValueError at test_sockets.py" in caplog.text


def test_pages_keep_to_the_scope_of_the_visitor(studio):
    with studio.client() as client:
        for name in ("north", "south"):
            client.post("/streams", json={"name": name, **feed_policy()}).raise_for_status()
            people = feed.generate(40, 3)
            ids = pc.binary_join_element_wise(people["patient_id"], name, "-")
            body = lines(people.set_column(people.column_names.index("patient_id"), "patient_id", ids))
            headers = {"Content-Type": NDJSON, "Idempotency-Key": "1"}
            client.post(f"/streams/{name}/records", content=body, headers=headers).raise_for_status()
    narrow = Tokens(studio.hub.store).create("narrow", Role.ANALYST, scope=["stream:north"])[0]
    for token, sees in ((studio.tokens[Role.ANALYST], True), (narrow, False)):
        with signed_in(studio, token) as client:
            for path in ("/history", "/explore", "/explore?release=stream:south"):
                shown = client.get(path).text
                assert "north" in shown, path
                assert ("south" in shown) is sees, path


def test_the_audit_log_has_a_page_for_custodians(studio):
    with signed_in(studio, studio.tokens[Role.CUSTODIAN]) as client:
        shown = client.get("/audit-log").text
        assert studio.hub.audit_log.head()["digest"] in shown
        assert "sign-in" in shown
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        assert studio.hub.audit_log.head()["digest"] not in client.get("/audit-log").text


def test_every_script_of_a_page_has_the_nonce_of_its_answer(studio):
    with signed_in(studio, studio.tokens[Role.ANALYST]) as client:
        first, second = client.get("/history"), client.get("/history")
    for answer in (first, second):
        policy = answer.headers["content-security-policy"]
        nonce = re.search(r"script-src 'self' 'nonce-([\w-]{22})' 'unsafe-eval';", policy).group(1)
        assert "unsafe-inline" not in policy.split("style-src")[0]
        scripts = re.findall(r"<script[^>]*>", answer.text)
        assert len(scripts) > 5
        assert all(f'nonce="{nonce}"' in script for script in scripts)
    assert first.headers["content-security-policy"] != second.headers["content-security-policy"]
