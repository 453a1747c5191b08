"""Tables, evolving tables and series over HTTP; jobs that survive a restart, and cancelled ones that leave nothing."""

from __future__ import annotations

import io
import json
import threading
import zipfile

import httpx
import numpy as np
import pyarrow as pa
import pytest
import yaml
from serving import InThread, csv, until_done

from reticent.datasets import hospital, series
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.publication import gate
from reticent.release import Release
from reticent.service import jobs as jobs_module
from reticent.service.demo import rename_persons
from reticent.service.hub import Hub
from reticent.service.policy_registry import parse_policy
from reticent.service.routes.tables import store_table
from reticent.store import Store

CSV = {"Content-Type": "text/csv"}
PRIOR = {"prior.csv": csv_text(hospital.prior())}


@pytest.fixture(scope="module")
def client(server):
    with server.client() as opened:
        yield opened


def upload(client: httpx.Client, rows: int = 500) -> dict:
    answer = client.post("/tables", params={"name": "h.csv"}, content=csv(hospital.generate(rows, 1)), headers=CSV)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_table_from_upload_to_audit(client, tmp_path):
    table = upload(client)
    guess = client.get(f"/tables/{table['id']}/guess").json()
    assert guess["person"] == "patient_id"
    job = client.post(f"/tables/{table['id']}/jobs", json={"policy": policy_yaml("hospital"), "files": PRIOR}).json()
    done = until_done(client, job["id"])
    assert done["state"] == "done", done
    release = client.get(f"/releases/{done['release']}").json()
    assert release["verification"]["holds"]
    for form in ("csv", "parquet"):
        packed = client.get(f"/releases/{done['release']}/download", params={"format": form})
        zipfile.ZipFile(io.BytesIO(packed.content)).extractall(tmp_path / form)
        assert Release.from_dir(tmp_path / form).tables["data"].num_rows == release["records"]["published"]
    audit = client.post("/audits", json={"releases": [done["release"]]}).json()
    assert audit["holds"]
    assert client.get(f"/audits/{audit['id']}").json() == audit
    assert client.get(f"/audits/{audit['id']}/report").status_code == 404
    attacked = client.post("/audits", json={"releases": [done["release"]], "report": True}).json()
    assert attacked["holds"], attacked
    assert client.get(f"/audits/{attacked['id']}/report").text.lstrip().lower().startswith("<!doctype html")
    assert client.delete(f"/tables/{table['id']}").status_code == 204
    assert client.get(f"/tables/{table['id']}").status_code == 404


def test_what_was_guessed_is_a_policy_that_jobs_take(client):
    body = csv(rename_persons(hospital.generate(300, 9), "G"))
    table = client.post("/tables", params={"name": "g.csv"}, content=body, headers=CSV).json()
    guess = client.get(f"/tables/{table['id']}/guess").json()
    job = client.post(f"/tables/{table['id']}/jobs", json={"policy": guess["policy"]}).json()
    done = until_done(client, job["id"])
    assert done["state"] == "done", done


def test_a_policy_that_cannot_be_met_publishes_nothing(client):
    before = len(client.get("/releases").json())
    policy = yaml.safe_load(policy_yaml("hospital")) | {"privacy": {"l": 400}}
    job = client.post(f"/tables/{upload(client)['id']}/jobs", json={"policy": policy, "files": PRIOR}).json()
    done = until_done(client, job["id"])
    assert (done["state"], done["error"]["code"]) == ("failed", "guarantee")
    assert len(client.get("/releases").json()) == before


PLACES = {
    "hierarchy": {"columns": {"sex": {"role": "quasi", "hierarchy": {"file": "NAME"}}}},
    "key": {"columns": {"admission_date": {"role": "quasi", "identifier": {"shift": 9, "key": "NAME"}}}},
    "prior": {"prior": {"file": "NAME"}},
}


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.csv", "a/b.csv", ".hidden", "", "x\x00.csv"])
@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_policy_reads_no_file_of_the_server(client, name, place):
    policy = yaml.safe_load(policy_yaml("hospital"))
    more = json.loads(json.dumps(PLACES[place]).replace("NAME", json.dumps(name)[1:-1]))
    policy["columns"] |= more.pop("columns", {})
    policy |= more
    for files in (PRIOR, PRIOR | {name: "a;*\n"}):
        table = upload(client)
        answer = client.post(f"/tables/{table['id']}/jobs", json={"policy": policy, "files": files})
        assert answer.status_code == 422
        assert "root:" not in answer.text


def test_packed_uploads_are_refused(client):
    import gzip

    answer = client.post("/tables", content=gzip.compress(b"a,b\n1,2\n"), headers=CSV)
    assert answer.status_code == 422


def test_large_bodies_are_refused(tmp_path):
    running = InThread(tmp_path, max_body=1000)
    try:
        with running.client() as client:
            assert client.post("/tables", content=b"a" * 2000, headers=CSV).status_code == 413

            def chunks():
                for _ in range(10):
                    yield b"a" * 500

            assert client.post("/tables", content=chunks(), headers=CSV).status_code == 413
    finally:
        running.close()


def test_an_evolving_table_is_changed_and_published(client):
    policy = yaml.safe_load(policy_yaml("hospital"))
    client.post("/evolving", json={"name": "ev", "policy": policy, "files": PRIOR}).raise_for_status()
    table = rename_persons(hospital.generate(600, 2), "E")  # others of this server have the same names
    headers = CSV | {"Idempotency-Key": "first"}
    one = client.post("/evolving/ev/changes", content=csv(table.slice(0, 500)), headers=headers).json()
    again = client.post("/evolving/ev/changes", content=csv(table.slice(0, 500)), headers=headers).json()
    assert one == again
    assert one["rows"] == 500
    assert client.post("/evolving/ev/changes", content=csv(table.slice(0, 9)), headers=headers).status_code == 409
    done = until_done(client, client.post("/evolving/ev/publish", json={}).json()["id"])
    assert done["state"] == "done", done
    client.post(
        "/evolving/ev/changes", content=csv(table.slice(500)), headers=CSV | {"Idempotency-Key": "second"}
    ).raise_for_status()
    done = until_done(client, client.post("/evolving/ev/publish", json={}).json()["id"])
    assert done["state"] == "done", done
    assert client.get("/evolving/ev").json()["publications"] == 2
    numbers = [r["number"] for r in client.get("/releases").json() if r["source"] == "ev"]
    assert sorted(numbers) == [1, 2]


def test_a_series_is_published_once_per_key(client):
    files = {"updates.csv": csv(series.updates()).decode(), "prior.csv": csv_text(series.prior())}
    policy = yaml.safe_load(policy_yaml("series"))
    client.post("/series", json={"name": "se", "policy": policy, "files": files}).raise_for_status()
    for i, people in enumerate(series.generate(300, 2, 1)):
        table = rename_persons(people, "S")  # others of this server have the same names
        headers = CSV | {"Idempotency-Key": f"r{i}"}
        job = client.post("/series/se/releases", content=csv(table), headers=headers).json()
        assert until_done(client, job["id"])["state"] == "done"
        assert client.post("/series/se/releases", content=csv(table), headers=headers).json()["id"] == job["id"]
        assert client.post("/series/se/releases", content=csv(table.slice(1)), headers=headers).status_code == 409
    assert client.get("/series/se").json()["releases"] == 2
    assert not [table for table in client.get("/tables").json() if table["name"] == "se"]


def test_a_job_is_taken_up_after_a_restart(tmp_path, monkeypatch):
    """The server goes while a job runs: the next one runs it again and publishes once."""
    hold, entered = threading.Event(), threading.Event()
    real = jobs_module.publish_table

    def slow(*args, **kwargs):
        entered.set()
        hold.wait()
        raise SystemExit  # the process is gone before anything is published

    monkeypatch.setattr(jobs_module, "publish_table", slow)
    first = InThread(tmp_path)
    with first.client() as client:
        ident = client.post(
            f"/tables/{upload(client)['id']}/jobs", json={"policy": policy_yaml("hospital"), "files": PRIOR}
        ).json()["id"]
        entered.wait()
        assert client.get(f"/jobs/{ident}").json()["state"] == "running"
        hold.set()
    first.close()
    monkeypatch.setattr(jobs_module, "publish_table", real)
    second = InThread(tmp_path)
    try:
        with second.client() as client:
            done = until_done(client, ident)
            assert done["state"] == "done", done
            assert [release["id"] for release in client.get("/releases").json()] == [done["release"]]
    finally:
        second.close()


def test_a_cancelled_job_publishes_nothing(tmp_path, monkeypatch):
    """Even where its search is over: it is cancelled between the verifier and the transaction."""
    hold, entered = threading.Event(), threading.Event()
    real = gate.pass_gate

    def slow(*args, **kwargs):
        passed = real(*args, **kwargs)
        entered.set()
        hold.wait()
        return passed

    monkeypatch.setattr("reticent.publication.table.pass_gate", slow)
    running = InThread(tmp_path)
    try:
        with running.client() as client:
            table = upload(client)
            ident = client.post(
                f"/tables/{table['id']}/jobs", json={"policy": policy_yaml("hospital"), "files": PRIOR}
            ).json()["id"]
            entered.wait()
            assert client.delete(f"/jobs/{ident}").json()["state"] == "cancelled"
            hold.set()
            running.hub.jobs.wait(ident)
            assert client.get(f"/jobs/{ident}").json()["state"] == "cancelled"
            assert client.get("/releases").json() == []
            store = running.hub.store
            for publisher in store.publishers():  # the names that publications have in the store are no concern of ours
                assert not list(store.outbox(publisher))
                assert not len(store.ledger(publisher))
    finally:
        hold.set()
        running.close()


def test_a_cancelled_job_stays_cancelled_where_the_same_was_published_before(tmp_path, monkeypatch):
    hold, entered = threading.Event(), threading.Event()
    real = jobs_module.find_publication

    def slow(*args, **kwargs):
        publisher = real(*args, **kwargs)
        if publisher is not None:
            entered.set()
            hold.wait()
        return publisher

    monkeypatch.setattr(jobs_module, "find_publication", slow)
    running = InThread(tmp_path)
    try:
        with running.client() as client:
            table, wish = upload(client), {"policy": policy_yaml("hospital"), "files": PRIOR, "method": "mondrian"}
            first = client.post(f"/tables/{table['id']}/jobs", json=wish).json()["id"]
            assert until_done(client, first)["state"] == "done"
            again = client.post(f"/tables/{table['id']}/jobs", json=wish).json()["id"]
            assert entered.wait(30)
            assert client.delete(f"/jobs/{again}").json()["state"] == "cancelled"
            hold.set()
            running.hub.jobs.wait(again)
            assert client.get(f"/jobs/{again}").json()["state"] == "cancelled"
    finally:
        hold.set()
        running.close()


class KilledError(BaseException):
    """As if the process had been killed: nothing catches it, and the job stays as it was."""


def test_a_job_that_ends_the_server_is_tried_three_times(tmp_path, monkeypatch):
    tried = []

    def poison(*_, **__):
        tried.append(1)
        raise KilledError

    def opened():
        store = Store.open(tmp_path / "store.db")
        return store, Hub(store)

    monkeypatch.setattr(jobs_module, "publish_table", poison)
    store, hub = opened()
    table = store_table(hub, csv(hospital.generate(50, 1)), "h.csv")
    policy = hub.accept(parse_policy(policy_yaml("hospital"), PRIOR))
    job = hub.jobs.begin("table", "h.csv", {"table": table["id"], "policy_hash": policy.hash, "method": None})["id"]
    for _ in range(5):
        hub.close()
        store.close()
        store, hub = opened()
    try:
        assert len(tried) == 3
        parked = hub.jobs.get(job)
        assert (parked["state"], parked["error"]["code"]) == ("parked", "parked")
        monkeypatch.undo()
        hub.jobs.retry(job)
        assert hub.jobs.wait(job)["state"] == "done"
        assert hub.jobs.retry(job)["state"] == "done"  # a second time changes nothing
    finally:
        hub.close()
        store.close()


def endless(seed: int) -> tuple[bytes, dict]:
    """A table and a policy whose search would not end by itself: thirty columns, limits out of reach."""
    rng = np.random.default_rng(seed)
    table = pa.table({f"c{i:02}": rng.integers(0, 100, 300) for i in range(30)})
    columns = {name: {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}} for name in table.column_names}
    limits = {"method": "optimal", "time_limit": 1e6, "memory_limit": 10**6}
    return csv(table), {"version": 1, "columns": columns, "privacy": {"k": 3}, "table": limits}


def test_cancelling_frees_the_worker(tmp_path, monkeypatch):
    """Both workers search without end: a third job can only be done once they are cancelled and have stopped."""
    searching, real = threading.Semaphore(0), jobs_module.publish_table

    def noted(*args, **kwargs):
        searching.release()
        return real(*args, **kwargs)

    monkeypatch.setattr(jobs_module, "publish_table", noted)
    running = InThread(tmp_path)
    try:
        with running.client() as client:
            stuck = []
            for seed in (1, 2):
                data, policy = endless(seed)
                table = client.post("/tables", params={"name": f"{seed}.csv"}, content=data, headers=CSV).json()
                stuck.append(client.post(f"/tables/{table['id']}/jobs", json={"policy": policy}).json()["id"])
                searching.acquire()
            policy = yaml.safe_load(policy_yaml("hospital")) | {"table": {"method": "anatomy"}}
            body = {"policy": policy, "files": PRIOR}
            waiting = client.post(f"/tables/{upload(client)['id']}/jobs", json=body).json()["id"]
            assert client.get(f"/jobs/{waiting}").json()["state"] == "queued"
            for ident in stuck:
                assert client.delete(f"/jobs/{ident}").json()["state"] == "cancelled"
            done = until_done(client, waiting)
            assert done["state"] == "done", done
            assert [release["id"] for release in client.get("/releases").json()] == [done["release"]]
    finally:
        for ident in stuck:
            running.hub.jobs.cancel(ident)
        running.close()
