"""Strangers and slow clients: what they can make the server wait for, read or keep."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import httpx
import pytest
import uvicorn
from serving import InThread, feed_policy
from test_access_walk import OPEN, routes

from reticent.service.connection import Connection
from reticent.service.run import config
from reticent.service.settings import Settings
from reticent.service.tokens import Role

HEAD = b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "header_timeout", 0.5)
        patch.setattr(Connection, "read_timeout", 0.5)
        running = InThread(tmp_path_factory.mktemp("hasty"), wrong_token_rate=1e9, timeout=1.0)
        yield running
        running.close()


def opened(server: InThread) -> socket.socket:
    host, port = server.root.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def ends(link: socket.socket, *, drip: bytes = b"") -> tuple[bytes, float]:
    """What the server says until it hangs up, and after how many seconds; meanwhile a byte now and then."""
    began, said = time.monotonic(), b""
    link.settimeout(0.1)
    while time.monotonic() - began < 5:
        try:
            if drip:
                link.sendall(drip)
            part = link.recv(65536)
        except TimeoutError:
            continue
        except OSError:
            return said, time.monotonic() - began
        if not part:
            return said, time.monotonic() - began
        said += part
    raise AssertionError("the connection was kept")


@pytest.mark.parametrize(
    ("first", "drip"),
    [(b"", b""), (HEAD, b""), (HEAD, b"X-A: b\r\n"), (b"", b"\r\n"), (b"G", b""), (HEAD + b"\r\n", b"\r\n")],
    ids=["nothing", "half", "drip", "empty lines", "one byte", "after an answer"],
)
def test_a_request_that_does_not_come_is_not_waited_for(hasty, first, drip):
    with opened(hasty) as link:
        link.sendall(first)
        _, seconds = ends(link, drip=drip)
        assert seconds < 2.5


def test_headers_have_an_end(hasty):
    with opened(hasty) as link:
        sent = 0
        with pytest.raises(OSError):  # noqa: PT012 - whenever it is noticed
            link.sendall(HEAD)
            while sent < 8 << 20:
                link.sendall(b"X-A: " + b"a" * 32_000 + b"\r\n")
                sent += 32_000
        assert sent < 4 << 20


@pytest.mark.parametrize("role", [None, Role.MONITOR])
def test_the_token_is_asked_for_before_the_body(hasty, role):
    """Only headers are sent; a client that may not call is told so at once."""
    token = f"Authorization: Bearer {hasty.tokens[role]}\r\n" if role else ""
    for method, path in routes(hasty):
        if (method, path) in OPEN or method != "POST":
            continue
        where = path.replace("{ident}", "0" * 16).replace("{name}", "nothing")
        with opened(hasty) as link:
            kind = "application/json"
            head = (
                f"POST {where} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 60000000\r\n{token}\r\n"
            )
            link.sendall(head.encode())
            answer = link.recv(65536)
        assert answer.startswith(b"HTTP/1.1 403" if role else b"HTTP/1.1 401"), (path, answer[:60])


def test_a_body_that_is_refused_is_not_kept_and_not_waited_for(hasty):
    with opened(hasty) as link:
        link.sendall(b"POST /api/v1/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n")
        said, seconds = ends(link, drip=b"a")
    assert said.startswith(b"HTTP/1.1 401")
    assert seconds < 2.5


def test_a_refused_body_that_comes_quickly_leaves_the_connection_open(hasty):
    with httpx.Client(base_url=hasty.root) as client:
        assert client.post("/api/v1/streams", content=b"a" * 3_000_000).status_code == 401
        assert client.get("/api/v1/health").status_code == 200


def test_a_body_that_drips_is_refused(hasty):
    with opened(hasty) as link:
        token = hasty.tokens[Role.CUSTODIAN]
        link.sendall(
            f"POST /api/v1/streams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n".encode()
        )
        said, seconds = ends(link, drip=b" ")
    assert said.startswith(b"HTTP/1.1 408")
    assert seconds < 4


def test_a_subscriber_that_does_not_read_is_cut_off():
    """32 MB are written at once, or piece by piece; the client takes none of it."""
    ended = threading.Event()

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        pieces = 1 if scope["path"] == "/whole" else 512
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for i in range(pieces):
                await send(
                    {"type": "http.response.body", "body": bytes((32 << 20) // pieces), "more_body": i < pieces - 1}
                )
        finally:
            ended.set()

    class Hasty(Connection):
        read_timeout = 0.3

    settings = config(app, Settings(""))
    settings.http = settings.http_protocol_class = Hasty
    settings.lifespan = "off"
    server = uvicorn.Server(settings)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        for path in (b"/whole", b"/pieces"):
            ended.clear()
            with socket.create_connection(listening.getsockname(), timeout=5) as link:
                link.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                deadline = time.monotonic() + 5
                while not (ended.is_set() and not server.server_state.connections):
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            with socket.create_connection(listening.getsockname(), timeout=5) as link:  # one that reads gets all
                link.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                total = 0
                while part := link.recv(1 << 20):
                    total += len(part)
            assert total > 32 << 20
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def test_one_answer_holds_a_few_megabytes(hasty):
    with hasty.client() as client:
        client.post("/streams", json={"name": "wide", **feed_policy()}).raise_for_status()
        store = hasty.hub.store
        with store.transaction() as tx:
            for _ in range(12):
                tx.put_outbox("stream:wide", "ndjson", b"x" * 999_999 + b"\n")
        cursor, pages = -1, []
        while (answer := client.get("/streams/wide/records", params={"cursor": cursor, "limit": 1000})).content:
            pages.append(len(answer.content))
            cursor = int(answer.headers["Reticent-Cursor"])
    assert sum(pages) == 12_000_000
    assert max(pages) <= 5_000_000


@pytest.mark.parametrize("kind", ["records", "events"])
def test_a_batch_that_goes_meanwhile_is_not_passed_over(hasty, kind, monkeypatch):
    """The pages are bound to numbers; when one of them is gone, the answer ends before it."""
    name = f"gone-{kind}"
    with hasty.client() as client:
        client.post("/streams", json={"name": name, **feed_policy()}).raise_for_status()
        store = hasty.hub.store
        with store.transaction() as tx:
            for letter in b"abc":
                tx.put_outbox(f"stream:{name}", "ndjson", bytes([letter]) * 99_999 + b"\n")
        stored = type(store).outbox
        missing = lambda self, publisher, *, after=-1: (  # noqa: E731
            entry for entry in stored(self, publisher, after=after) if entry.number != 1
        )
        monkeypatch.setattr(type(store), "outbox", missing)
        said = b""
        with contextlib.suppress(httpx.RemoteProtocolError), client.stream("GET", f"/streams/{name}/{kind}") as answer:
            for part in answer.iter_bytes():
                said += part
        assert b"aaaa" in said
        assert b"cccc" not in said


def test_right_tokens_pass_while_wrong_ones_are_tried(tmp_path):
    running = InThread(tmp_path, wrong_token_rate=1.0)
    try:
        assert 429 in [httpx.get(f"{running.root}/api/v1/streams").status_code for _ in range(6)]
        with running.client() as client:
            assert client.get("/streams").status_code == 200
    finally:
        running.close()
