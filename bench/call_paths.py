"""Count the source files that a record passes: files whose functions are called more often with more data.

A call path runs twice, the second time with several times the data in blocks or pushes of the same size. Files whose
calls do not grow belong to the set-up. A table and a publication are one block, so their paths have no such difference:
there, all files with a called function count, including the set-up.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from fastapi.testclient import TestClient

import reticent
from reticent.cli import main
from reticent.datasets import feed
from reticent.service.app import create_app
from reticent.service.settings import Settings
from reticent.service.tokens import Role, Tokens
from reticent.store import Store

SOURCE = str(Path(reticent.__file__).parent)
BLOCK, FURTHER = 100_000, 4


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return the files of the four call paths."""
    size = BLOCK // (10 if quick else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        feeds = {times: folder / ("feed.csv" if times == 1 else f"feed-{times}.csv") for times in (1, FURTHER)}
        for times, path in feeds.items():
            _command("datasets", "feed", "-n", str(size * times), "--seed", "1", "-o", path)
        _command("datasets", "hospital", "-n", "2000", "--seed", "1", "-o", folder / "hospital.csv")
        table, policy, store = folder / "hospital.csv", folder / "hospital.policy.yaml", folder / "evolving.db"
        _command("evolve", "init", store, "-p", policy)
        _command("evolve", "insert", store, table)
        body = b"".join(
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in feed.generate(100, 1).to_pylist()
        )
        once, more = (_calls(partial(_stream, folder, path, times)) for times, path in feeds.items())
        few, many = (_calls(partial(_push, folder, body, times)) for times in (5, 25))
        return {
            "stream": _grown(once, more),
            "push": _grown(few, many),
            "anonymize": _files(_calls(partial(_command, "anonymize", table, "-p", policy, "-o", folder / "release"))),
            "evolve publish": _files(_calls(partial(_command, "evolve", "publish", store, "-o", folder / "first"))),
        }


def _calls(work: Callable[[], object]) -> Counter[str]:
    """Count the calls of each function of the package, in all threads."""
    seen: Counter[str] = Counter()

    def look(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(SOURCE):
            seen[f"{code.co_filename[len(SOURCE) + 1 :]}:{code.co_qualname}"] += 1

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def _grown(few: Counter[str], many: Counter[str]) -> dict[str, Any]:
    return _files(Counter({name: times for name, times in many.items() if times > few[name] + 1}))


def _files(calls: Counter[str]) -> dict[str, Any]:
    files = {name.split(":")[0] for name in calls}
    return {"files": len(files), "by_room": dict(sorted(Counter(file.split("/")[0] for file in files).items()))}


def _command(*words: str | Path) -> None:
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        main([str(word) for word in words])


def _stream(folder: Path, data: Path, times: int) -> None:
    store, sink = folder / f"stream-{times}.db", folder / f"released-{times}.ndjson"
    _command("stream", data, "-p", folder / "feed.policy.yaml", "--store", store, "--to", sink)


def _push(folder: Path, body: bytes, times: int) -> None:
    store = str(folder / f"service-{times}.db")
    with Store.open(store) as opened:
        token = Tokens(opened).create("paths", Role.CUSTODIAN)[0]
    files = {"prior.csv": (folder / "prior.csv").read_text(), "kernel.csv": (folder / "kernel.csv").read_text()}
    with TestClient(
        create_app(Settings(store=store, studio=False)), headers={"Authorization": f"Bearer {token}"}
    ) as client:
        wish = {"name": "paths", "policy": (folder / "feed.policy.yaml").read_text(), "files": files}
        client.post("/api/v1/streams", json=wish).raise_for_status()
        for number in range(times):
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{number}"}
            client.post("/api/v1/streams/paths/records", content=body, headers=headers).raise_for_status()
