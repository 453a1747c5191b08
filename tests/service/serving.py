"""A server in a thread, and one in a process that can be killed."""

from __future__ import annotations

import contextlib
import io
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import orjson
import pyarrow.csv as pacsv
import uvicorn

from reticent.datasets import feed
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.service.app import create_app
from reticent.service.run import config
from reticent.service.settings import Settings
from reticent.service.tokens import Role, Tokens
from reticent.store import Store

NDJSON = "application/x-ndjson"


class InThread:
    """A server on a free port of this machine, over a store in a folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.store = str(folder / "store.db")
        with Store.open(self.store) as store:
            self.tokens = {role: Tokens(store).create(f"test {role}", role)[0] for role in Role}
        self.app = create_app(Settings(store=self.store, **({"studio": False} | settings)))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.root = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(config(self.app, self.app.state.settings))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        self.caller = httpx.Client(timeout=60)  # without a token of its own
        while not self._server.started:
            threading.Event().wait(0.01)

    @property
    def hub(self):
        return self.app.state.hub

    def client(self, role: Role | None = Role.CUSTODIAN) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        return httpx.Client(base_url=f"{self.root}/api/v1", headers=headers, timeout=60)

    def close(self) -> None:
        self.caller.close()
        self._server.should_exit = True
        self._thread.join(30)
        self._socket.close()


class InProcess:
    """`reticent serve` as users start it."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "store.db")
        with Store.open(self.store) as store:
            self.token = Tokens(store).create("test", Role.CUSTODIAN)[0]
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "reticent",
            "serve",
            "--store",
            self.store,
            "--no-studio",
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "serves at" in line:
                self.port = int(line.split("/api")[0].rsplit(":", 1)[1])
            if "Stop:" in line:
                return
        raise AssertionError("the server did not start")

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}/api/v1",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        self.process.wait()
        self.process.stderr.close()


def csv(table) -> bytes:
    out = io.BytesIO()
    pacsv.write_csv(table, out)
    return out.getvalue()


def lines(table) -> bytes:
    return b"\n".join(map(orjson.dumps, table.to_pylist()))


def feed_policy(**changes: Any) -> dict[str, Any]:
    import yaml

    policy = yaml.safe_load(policy_yaml("feed"))
    policy["stream"] |= changes
    return {"policy": policy, "files": {"prior.csv": csv_text(feed.strata()), "kernel.csv": csv_text(feed.kernel())}}


def until_done(client: httpx.Client, job: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = client.get(f"/jobs/{job}").json()
        if found["state"] in ("done", "failed", "cancelled", "parked"):
            return found
        threading.Event().wait(0.02)
    raise AssertionError("the job did not end")
