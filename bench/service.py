"""Service: 200 feeds push batches of 100 records over HTTP (loopback) into one durable stream.

Measured are the latency at a steady total rate, several times and once long enough to write a whole state, and the
maximum rate when every feed sends its next batch after the last answer. Each feed has its own schedule, and a late
batch counts from the time it was due. Nothing is excluded: feeds connect with their first batches, within the first
second after the server's start. Load and server share the machine. `inside` is the server's own figure, from a batch's
arrival to its commit, over the last ten seconds.

With `kill`, the server is killed in the middle and restarted. Feeds retry with their keys, and every record must be in
the released stream exactly once.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil

from reticent.datasets import feed
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.service.tokens import Role, Tokens
from reticent.store import Store

FEEDS, BATCH, STEADY = 200, 100, 20_500


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return figures of a steady load, of the maximum rate, and of a run with a kill in the middle."""
    seconds = 3.0 if quick else 12.0
    return {
        "steady": [load(seconds=seconds, rate=STEADY) for _ in range(1 if quick else 3)],
        "sustained": load(seconds=seconds if quick else 60.0, rate=STEADY),
        "most": load(seconds=seconds, rate=None),
        "killed": load(seconds=seconds, rate=10_000, kill=True),
    }


def load(
    *, seconds: float, rate: float | None, feeds: int = FEEDS, batch: int = BATCH, kill: bool = False
) -> dict[str, Any]:
    """Run once against a new server; `rate` in records per second over all feeds, None for the maximum."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            return pushed(
                server, Plan(server, seconds, feeds, batch, None if rate is None else rate / batch / feeds, kill=kill)
            )
        finally:
            server.stop(signal.SIGTERM)


def pushed(server: Server, plan: Plan) -> dict[str, Any]:
    """Run a plan and return its figures."""
    before = _processor(server)
    asyncio.run(plan.go())
    after, inside = _processor(server), server.status()
    figures = plan.figures() | {"inside": {name: inside[name] for name in ("median_ms", "p99_ms")}}
    if not plan.kill:
        spent = {name: after[name] - before[name] for name in before}
        figures["server_cpu_ms_per_batch"] = 1e3 * spent["server"] / len(plan.latencies)
        figures["processor_seconds"] = spent | {"by_the_clock": plan.took}
    return figures


def _processor(server: Server) -> dict[str, float]:
    """Return processor time so far: of the server, of its drafts, and of the load with the client that opens pages."""
    own = time.process_time()
    return {"server": server.cpu_seconds(), "drafts": server.drafts_seconds(), "load": own}


class Server:
    """A server process with its own store."""

    def __init__(self, folder: Path, *, studio: bool = False) -> None:
        self.store = folder / "store.db"
        self._pages = [] if studio else ["--no-studio"]
        with Store.open(self.store) as store:
            self.custodian, _ = Tokens(store).create("bench", Role.CUSTODIAN)
            self.feed, _ = Tokens(store).create("bench feeds", Role.FEED)
        self.port = 0
        self.start()
        with self.client() as client:
            files = {"prior.csv": csv_text(feed.strata()), "kernel.csv": csv_text(feed.kernel())}
            response = client.post("/streams", json={"name": "bench", "policy": policy_yaml("feed"), "files": files})
            response.raise_for_status()

    @property
    def address(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.port}/api/v1"

    def client(self) -> httpx.Client:
        """Return a client for the custodian."""
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {self.custodian}"}, timeout=60)

    def status(self) -> dict[str, Any]:
        """Return the server's status of its stream."""
        with self.client() as client:
            status: dict[str, Any] = client.get("/streams/bench").raise_for_status().json()
            return status

    def start(self) -> None:
        """Start the process and wait until it answers."""
        command = [sys.executable, "-m", "reticent", "serve", "--store", str(self.store), *self._pages]
        command += ["--port", str(self.port), "--rate", "1000000"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "serves at" in line:
                self.port = int(line.split("/api")[0].strip().rsplit(":", 1)[1])
            if "Stop:" in line:
                break

    def cpu_seconds(self) -> float:
        """Return the processor time of the process so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def drafts_seconds(self) -> float:
        """Return the processor time of its child processes."""
        process = psutil.Process(self.process.pid)
        ended = process.cpu_times()
        going = [child.cpu_times() for child in process.children(recursive=True)]
        return float(ended.children_user + ended.children_system + sum(one.user + one.system for one in going))

    def memory(self) -> float:
        """Return the memory of the process in megabytes."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    def stop(self, how: signal.Signals) -> None:
        """End the process."""
        self.process.send_signal(how)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@dataclass
class Plan:
    """The schedule of the feeds, and its result."""

    server: Server
    seconds: float
    feeds: int
    batch: int
    batches_per_second: float | None
    kill: bool = False
    latencies: list[float] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    retries: int = 0
    took: float = 0.0

    async def go(self) -> None:
        """Run all feeds at once."""
        bodies = _bodies(self.batch)
        begin = time.perf_counter() + 0.2
        tasks = [asyncio.create_task(self._feed(i, bodies, begin)) for i in range(self.feeds)]
        if self.kill:
            await asyncio.sleep(0.2 + self.seconds / 2)
            await asyncio.to_thread(self.server.stop, signal.SIGKILL)
            await asyncio.to_thread(self.server.start)
        await asyncio.gather(*tasks)
        self.took = time.perf_counter() - begin

    async def _feed(self, number: int, bodies: list[bytes], begin: float) -> None:
        connection = Connection(self.server)
        due = begin + (number / self.feeds) * (1 / self.batches_per_second if self.batches_per_second else 0.1)
        turn = 0
        while due < begin + self.seconds:
            await asyncio.sleep(due - time.perf_counter())
            key = f"{number}-{turn}"
            body = bodies[(number + turn) % len(bodies)].replace(b"@KEY@", key.encode())
            self.sent.add(key)
            while not await connection.push(key, body):
                self.retries += 1
                await asyncio.sleep(0.2)
            self.latencies.append(time.perf_counter() - due)
            turn += 1
            due = due + 1 / self.batches_per_second if self.batches_per_second else time.perf_counter()
        connection.close()

    def figures(self) -> dict[str, Any]:
        """Return throughput, latencies, and whether every record was released exactly once."""
        times = sorted(self.latencies)
        lost, doubled = _compare(self.server, self.sent, self.batch)
        assert not lost, f"{lost} records lost"
        assert not doubled, f"{doubled} records doubled"
        return {
            "feeds": self.feeds,
            "batch": self.batch,
            "records": len(times) * self.batch,
            "records_per_second": len(times) * self.batch / self.took,
            "median_ms": 1e3 * times[len(times) // 2],
            "p90_ms": 1e3 * times[int(0.9 * len(times))],
            "p99_ms": 1e3 * times[int(0.99 * len(times))],
            "max_ms": 1e3 * times[-1],
            "retries": self.retries,
            "lost": lost,
            "doubled": doubled,
        }


class Connection:
    """A keep-alive connection with little cost for the client."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def push(self, key: str, body: bytes) -> bool:
        """Send one batch; return whether it was released."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._server.port)
            response, writer = self._streams
            head = (
                f"POST /api/v1/streams/bench/records HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._server.feed}\r\n"
                f"Content-Type: application/x-ndjson\r\nIdempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await response.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await response.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return False
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")), answer[:20]
        return answer.startswith(b"HTTP/1.1 200")

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams[1].close()
        self._streams = None


def _bodies(batch: int) -> list[bytes]:
    """Return batches; the plain column of each record is its mark."""
    table = feed.generate(20 * batch, 1)
    bodies = []
    for i in range(20):
        rows = table.slice(i * batch, batch).to_pylist()
        bodies.append(b"\n".join(orjson.dumps(row | {"admitted": f"@KEY@/{n}"}) for n, row in enumerate(rows)))
    return bodies


def _compare(server: Server, sent: set[str], batch: int) -> tuple[int, int]:
    seen: Counter[str] = Counter()
    headers = {"Authorization": f"Bearer {server.custodian}"}
    with httpx.Client(base_url=server.address, headers=headers, timeout=60) as client:
        cursor = "-1"
        while True:
            answer = client.get("/streams/bench/records", params={"cursor": cursor, "limit": 1000})
            if answer.headers["reticent-cursor"] == cursor:
                break
            cursor = answer.headers["reticent-cursor"]
            for line in answer.content.splitlines():
                if not line.startswith(b'{"type":"group"'):
                    seen[orjson.loads(line)["plain"]["admitted"]] += 1
    marks = {f"{key}/{n}" for key in sent for n in range(batch)}
    return len(marks - seen.keys()), sum(count - 1 for count in seen.values()) + len(seen.keys() - marks)


if __name__ == "__main__":
    print(orjson.dumps(run(quick="--quick" in sys.argv), option=orjson.OPT_INDENT_2).decode())
