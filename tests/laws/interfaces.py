"""The interfaces that publish data: the command line and the service, with the same methods to push, publish and inspect."""

from __future__ import annotations

import io
import json
import secrets
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.cli import main
from reticent.release import Release
from reticent.store import Store


class RefusedError(Exception):
    """Nothing was published; carries the message and the exit code or the error code."""

    def __init__(self, code, words) -> None:
        super().__init__(words)
        self.code, self.words = code, words


class CommandLine:
    """Commands as a user types them."""

    guarantee = 4

    def __init__(self, case, folder: Path, capsys, *, seed: int | None = None) -> None:
        self.case, self.folder, self.capsys = case, folder, capsys
        self.seed = [] if seed is None else ["--seed", str(seed)]
        self.store, self.publisher = folder / "store.db", case.kind
        self.count = 0
        (folder / "policy.json").write_text(json.dumps(case.policy))
        self.policy = folder / "policy.json"
        if case.kind == "evolving":
            self.run("evolve", "init", self.store, "-p", self.policy, *self.seed)

    def run(self, *args) -> str:
        with pytest.raises(SystemExit) as done:
            main([str(arg) for arg in args])
        words = "".join(self.capsys.readouterr())
        if done.value.code not in (0, None):
            raise RefusedError(done.value.code, words)
        return words

    def publish(self, table: pa.Table, *, again: bool = False) -> Path:
        """The next release of the table, or of the evolving table after the records came in; its folder."""
        self.count += 1
        data, out = self.folder / f"{self.count}.parquet", self.folder / f"out {self.count}"
        pq.write_table(table, data)
        rest = ["-o", out, "--format", "parquet"]
        if self.case.kind == "table":
            self.run("anonymize", data, "-p", self.policy, *rest, *self.seed, "--method", self.case.method)
        elif self.case.kind == "series":
            self.run("republish", data, "-p", self.policy, "--store", self.store, *rest, *self.seed)
        else:
            self.run("evolve", "insert", self.store, data)
            self.run("evolve", "publish", self.store, *rest, *(["--again"] if again else []))
        return out

    def restarted(self, folder: Path) -> CommandLine:
        """The same in another process, over a copy of the store; every command is one anyway."""
        shutil.copytree(self.folder, folder)
        other = object.__new__(CommandLine)
        other.__dict__ = self.__dict__ | {
            "folder": folder,
            "store": folder / "store.db",
            "policy": folder / "policy.json",
        }
        return other

    def close(self) -> None:
        """Nothing is open."""


class Service:
    """Requests to an app over a store."""

    guarantee = "guarantee"

    def __init__(self, case, folder: Path, capsys=None, *, begun: bool = False) -> None:
        from serving import InThread

        from reticent.service.documents import OWNER

        self.case, self.folder, self.store = case, folder, folder / "store.db"
        self.server = InThread(folder)
        self.client = self.server.client()
        self.publisher = OWNER if case.kind == "table" else f"{case.kind}:x"
        if case.kind != "table" and not begun:
            try:
                self.post(f"/{case.kind}", json={"name": "x", **bundle(case)})
            except RefusedError:
                self.close()
                raise

    def post(self, path: str, **what) -> dict:
        answer = self.client.post(path, **what)
        if answer.status_code >= 400:
            raise RefusedError(answer.json()["error"]["code"], answer.text)
        return answer.json()

    def publish(self, table: pa.Table, *, again: bool = False) -> Path:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        body = {"content": sink.getvalue(), "headers": {"Content-Type": "application/vnd.apache.parquet"}}
        if self.case.kind == "table":
            ident = self.post("/tables", **body)["id"]
            job = self.post(f"/tables/{ident}/jobs", json={**bundle(self.case), "method": self.case.method})
        elif self.case.kind == "series":
            job = self.post("/series/x/releases", **body)
        else:
            self.post(
                "/evolving/x/changes", **body | {"headers": body["headers"] | {"Idempotency-Key": secrets.token_hex(8)}}
            )
            job = self.post("/evolving/x/publish", json={"again": again})
        done = self.server.hub.jobs.wait(job["id"])
        if done["state"] != "done":
            raise RefusedError(done["error"]["code"], json.dumps(done))
        packed = self.client.get(f"/releases/{done['release']}/download", params={"format": "parquet"})
        folder = self.folder / f"release {done['release']}"
        zipfile.ZipFile(io.BytesIO(packed.content)).extractall(folder)
        return folder

    def restarted(self, folder: Path) -> Service:
        """Another server over a copy of the store."""
        folder.mkdir()
        with Store.open(self.store):  # the last connection writes everything back
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Service(self.case, folder, begun=True)

    def close(self) -> None:
        self.client.close()
        self.server.close()


def bundle(case) -> dict:
    """The policy of a case as a client sends it: its prior along with it, under a plain name."""
    prior = case.policy.get("prior")
    if prior is None:
        return {"policy": case.policy}
    files = {"prior.csv": Path(prior["file"]).read_text()}
    named = prior | {"file": "prior.csv"}
    if "kernel" in prior:
        files["kernel.csv"] = Path(prior["kernel"]["file"]).read_text()
        named["kernel"] = {"file": "kernel.csv"}
    return {"policy": case.policy | {"prior": named}, "files": files}


INTERFACES = {"command line": CommandLine, "service": Service}


def stored(interface) -> list[tuple[bytes, str]]:
    """The bytes of every release in the store, with the digest in the ledger."""
    if not Path(interface.store).exists():
        return []
    with Store.open(interface.store, create=False) as store:
        names = [name for name in store.publishers() if name == interface.publisher or name.startswith("table-")]
        releases = [zip(store.outbox(name), store.ledger(name).entries, strict=True) for name in names]
        return [(entry.payload, line.digest) for pairs in releases for entry, line in pairs]


def read(folder: Path) -> tuple[Release, dict]:
    return Release.from_dir(folder), json.loads((folder / "release.json").read_text())
