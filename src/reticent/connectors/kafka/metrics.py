"""Serve a worker's metrics for Prometheus at `http://HOST:PORT/metrics`, without any personal data."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from reticent.errors import ConnectorError

if TYPE_CHECKING:
    from reticent.connectors.kafka.worker import Worker

_PAUSE = 0.5
_METRICS = {
    "records": ("counter", "Records released"),
    "dead_letters": ("counter", "Records rejected as dead letters"),
    "shards": ("gauge", "Partitions assigned to this worker"),
    "position": ("gauge", "Next input offset of a partition"),
    "persons": ("gauge", "Persons seen so far in a partition"),
    "omission_rate": ("gauge", "Omission rate: share of true values not among their candidates, with noise"),
    "alarm": ("gauge", "Whether the omission rate is too high: the prior no longer fits"),
    "open_groups": ("gauge", "Groups that can still take records"),
}


class Metrics:
    """Serves the latest metrics at HOST:PORT or on a loopback port; the worker updates them, at most twice a second."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._text, self._updated_at = b"", 0.0
        try:
            self._server = ThreadingHTTPServer((host or "127.0.0.1", int(port)), self._handler())
        except (OSError, ValueError, OverflowError):
            raise ConnectorError(
                f"--metrics: cannot listen at {address}.", hint="Write HOST:PORT with a free port."
            ) from None
        self.port = self._server.server_port

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def update(self, worker: Worker) -> None:
        """Update the metrics; called between two batches."""
        if time.monotonic() - self._updated_at < _PAUSE:
            return
        self._updated_at = time.monotonic()
        figures: dict[str, dict[str, float]] = {
            "records": {"": worker.published},
            "dead_letters": {"": worker.dead},
            "shards": {"": len(worker.shards)},
            "position": {_label(number): at for number, at in worker.positions().items()},
        }
        for number, shard in worker.shards.items():
            for name, value in shard.engine.metrics.items():
                if name in _METRICS:
                    figures.setdefault(name, {})[_label(number)] = value
        self._text = "".join(_family(name, values) for name, values in figures.items()).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path == "/metrics"
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(metrics._text if known else b"")

            def log_message(self, *_: object) -> None:
                """Log nothing about requests."""

        return Handler


def _label(shard: int) -> str:
    return f'{{shard="{shard}"}}'


def _family(name: str, values: dict[str, float]) -> str:
    kind, words = _METRICS[name]
    full = f"reticent_kafka_{name}" + ("_total" if kind == "counter" else "")
    lines = [f"{full}{label} {value:.16g}\n" for label, value in values.items()]
    return f"# HELP {full} {words}\n# TYPE {full} {kind}\n" + "".join(lines)
