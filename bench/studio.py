"""Studio under load: 200 feeds push 20,500 records a second while drafts of a table with 300,000 rows are computed.

`with drafts` is the load of `bench.service` while drafts of the large table are computed, two at a time, and a client
opens its release, queries it and opens the pages around it, one after the other, with their sockets as in a browser.
`alone` is the same load on a server without the studio. Both report the processor time of the server, its drafts, and
the load with the client, which share the machine.

`strangers` are clients without a token that send half a request each, or bodies of 60 MB, and clients that do not read.
Measured are the server's memory and the latency of `/health`. Load, strangers and server share the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import re
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pyarrow.csv as pacsv
from websockets.sync.client import connect

from bench.service import BATCH, FEEDS, STEADY, Plan, Server, load, pushed
from reticent.datasets import hospital
from reticent.service.access import COOKIE
from reticent.service.demo import rename_persons
from reticent.service.hub import Hub
from reticent.service.pages import drafts
from reticent.service.pages.plan import Plan as DraftPlan
from reticent.store import Store

DRAFTS = 8
_LOOK = 0.1
"""Seconds that a page stays open."""
_PAGE = re.compile(r"'client_id': '([0-9a-f-]{36})'")
QUASI = ("sex", "region", "postcode", "admission_route", "length_of_stay")
TABLE = {
    "version": 1,
    "person": "patient_id",
    "columns": {
        **dict.fromkeys(("patient_id", "name", "birth_date", "admission_date", "ward"), "identifier"),
        **dict.fromkeys(QUASI, "quasi"),
        "diagnosis": "sensitive",
    },
    "privacy": {"k": 5, "suppression": 0.05},
    "table": {"method": "mondrian"},
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return figures of the studio under load, and of strangers."""
    rows, seconds = (20_000, 4.0) if quick else (300_000, 30.0)
    return {
        "alone": load(seconds=seconds / 4, rate=STEADY),
        "with drafts": {"rows": rows} | under_load(rows, seconds),
        "strangers": strangers(quick=quick),
    }


def under_load(rows: int, seconds: float) -> dict[str, Any]:
    """Measure the load while the studio is in use."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), studio=True)
        try:
            studio = Studio(server, rows)
            studio.start()
            figures = pushed(server, Plan(server, seconds, FEEDS, BATCH, STEADY / BATCH / FEEDS))
            return figures | {"studio": studio.stop()}
        finally:
            server.stop(signal.SIGTERM)


class Studio(threading.Thread):
    """A custodian's client that opens the release of a large table, queries it and opens pages during drafts."""

    PAGES = ("/release", "/history", "/roles?table=TABLE", "/try?table=TABLE", "/work")
    QUESTIONS = ("/explore",)

    def __init__(self, server: Server, rows: int) -> None:
        super().__init__(daemon=True)
        self._server, self._over = server, threading.Event()
        self._visits: dict[str, list[float]] = {path.split("?")[0]: [] for path in (*self.PAGES, *self.QUESTIONS)}
        body = io.BytesIO()
        pacsv.write_csv(rename_persons(hospital.generate(rows, 1), "H"), body)  # persons who are not in the feeds
        with server.client() as client:
            sent = client.post("/tables?name=large", content=body.getvalue(), headers={"Content-Type": "text/csv"})
            self._table = str(sent.raise_for_status().json()["id"])
            job = client.post(f"/tables/{self._table}/jobs", json={"policy": TABLE}).raise_for_status().json()["id"]
            while (state := client.get(f"/jobs/{job}").json()["state"]) in ("queued", "running"):
                time.sleep(0.5)
            assert state == "done", state
        server.stop(signal.SIGTERM)
        with Store.open(server.store) as store, contextlib.closing(Hub(store)) as hub:
            plan = DraftPlan.of(hub, self._table)
            policies = [(f"draft {number}", TABLE | {"privacy": {"k": 5 + number}}) for number in range(DRAFTS)]
            drafts.begin(hub, plan, policies)
        server.start()  # it starts with the pending drafts

    def run(self) -> None:
        """Open one page after the other, and ask one query after the other at the same time."""
        asking = threading.Thread(target=self._visit, args=(self.QUESTIONS,))
        asking.start()
        self._visit(self.PAGES)
        asking.join()

    def _visit(self, pages: tuple[str, ...]) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{self._server.port}", timeout=120) as browser:
            browser.post("/sign-in", data={"token": self._server.custodian})
            for path in itertools.cycle(pages):
                if self._over.wait(0.2):
                    return
                began = time.perf_counter()
                self._open(browser, path)
                self._visits[path.split("?")[0]].append(time.perf_counter() - began)

    def _open(self, browser: httpx.Client, path: str) -> None:
        """Open a page and its socket; on the page Explore, wait for the answer."""
        page = _PAGE.search(browser.get(path.replace("TABLE", self._table)).raise_for_status().text)
        assert page is not None, path
        root = f"127.0.0.1:{self._server.port}"
        query = f"EIO=4&transport=websocket&implicit_handshake=true&client_id={page[1]}&tab_id={page[1]}&document_id=d&next_message_id=0"
        cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        address = f"ws://{root}/_nicegui_ws/socket.io/?{query}"
        with connect(address, origin=f"http://{root}", additional_headers=cookie, max_size=None) as link:
            link.recv(10)
            link.send("40")
            until = time.monotonic() + (60 if path == "/explore" else _LOOK)
            with contextlib.suppress(TimeoutError):
                while "answers" not in (said := str(link.recv(max(0.0, until - time.monotonic())))):
                    if said == "2":  # a ping of the socket protocol
                        link.send("3")

    def stop(self) -> dict[str, Any]:
        """Return what was done so far."""
        with self._server.client() as client:
            states = Counter(job["state"] for job in client.get("/jobs").json() if job["kind"] == "try")
            self._over.set()
            self.join(120)
            for job in client.get("/jobs").json():
                client.delete(f"/jobs/{job['id']}")
        return {
            "pages": sum(map(len, self._visits.values())),
            "slowest_ms": {path: 1e3 * max(times) for path, times in self._visits.items() if times},
            "drafts": dict(states),
        }


def strangers(*, quick: bool = False) -> dict[str, Any]:
    """Return memory and health while strangers hold half-sent requests, send large bodies, or do not read."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            asyncio.run(Plan(server, 2.0 if quick else 10.0, FEEDS, BATCH, STEADY / BATCH / FEEDS).go())
            seconds = 3.0 if quick else 10.0
            token = f"Authorization: Bearer {server.custodian}\r\n"
            large = b"POST /api/v1/tables HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n"
            asks = f"GET /api/v1/streams/bench/records?limit=1000 HTTP/1.1\r\nHost: x\r\n{token}\r\n"
            zip_of = f"GET /api/v1/streams/bench/events HTTP/1.1\r\nHost: x\r\n{token}\r\n"
            return {
                "nobody": _health_during(server, [], seconds),
                "1,000 half-sent requests": _health_during(
                    server, [(b"GET / HTTP/1.1\r\nHost: x\r\n", b"")] * 1_000, seconds
                ),
                "12 bodies of 60 MB without a token": _health_during(
                    server, [(large, bytes(60_000_000))] * 12, seconds
                ),
                "12 silent readers of pages": _health_during(server, [(asks.encode(), b"")] * 12, seconds),
                "12 silent readers of events": _health_during(server, [(zip_of.encode(), b"")] * 12, seconds),
            }
        finally:
            server.stop(signal.SIGTERM)


def _health_during(server: Server, links: list[tuple[bytes, bytes]], seconds: float) -> dict[str, Any]:
    """Measure the server's health a hundred times a second while connections send their data and read nothing."""
    before, peak, times = server.memory(), 0.0, []
    threads = [threading.Thread(target=_say, args=(server.port, *link, seconds), daemon=True) for link in links]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    with httpx.Client(base_url=server.address, timeout=60) as client:
        while time.monotonic() < until:
            began = time.perf_counter()
            client.get("/health").raise_for_status()
            times.append(time.perf_counter() - began)
            peak = max(peak, server.memory())
            time.sleep(0.01)
    for thread in threads:
        thread.join(30)
    times.sort()
    return {
        "memory_before_mb": before,
        "memory_peak_mb": peak,
        "health_median_ms": 1e3 * times[len(times) // 2],
        "health_p99_ms": 1e3 * times[int(0.99 * len(times))],
        "health_max_ms": 1e3 * times[-1],
    }


def _say(port: int, head: bytes, body: bytes, seconds: float) -> None:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=seconds) as link:
        link.sendall(head)
        link.sendall(body)
        time.sleep(seconds)
