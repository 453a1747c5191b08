"""The audit log: who did what, in a chain that shows where it was cut or changed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from serving import csv, feed_policy, until_done

from reticent.datasets import hospital
from reticent.service.audit_log import AuditLog, _key
from reticent.service.documents import OWNER
from reticent.service.tokens import Role, Tokens
from reticent.store import Store

POLICY = {
    "version": 1,
    "person": "patient_id",
    "columns": {"patient_id": {"role": "identifier"}, "name": {"role": "identifier"}, "sex": {"role": "quasi"}}
    | {"diagnosis": {"role": "sensitive"}},
    "privacy": {"k": 3, "suppression": 0.1},
}


def acts(client) -> list[tuple[str, str, str]]:
    return [(entry["action"], entry["target"], entry["name"]) for entry in client.get("/audit-log?limit=1000").json()]


def test_what_is_done_is_in_it(server):
    table = hospital.generate(300, 3).select(["patient_id", "name", "sex", "diagnosis"])
    with server.client() as client, server.client(Role.ANALYST) as analyst:
        before = len(acts(client))
        client.post("/streams", json={"name": "told", **feed_policy()}).raise_for_status()
        for _ in range(3):
            analyst.get("/streams/told/records").raise_for_status()
        sent = client.post("/tables?name=ward.csv", content=csv(table), headers={"Content-Type": "text/csv"}).json()
        job = client.post(f"/tables/{sent['id']}/jobs", json={"policy": POLICY}).json()
        release = until_done(client, job["id"])["release"]
        analyst.get(f"/releases/{release}/download").raise_for_status()
        audit = client.post("/audits", json={"releases": [release]}).json()["id"]
        client.delete(f"/tables/{sent['id']}").raise_for_status()
        assert acts(client)[before:] == [
            ("create", "stream:told", "test custodian"),
            ("read", "stream:told", "test analyst"),
            ("send", "table:ward.csv", "test custodian"),
            ("job", "table:ward.csv", "test custodian"),
            ("publish", f"release:{release}", "test custodian"),
            ("download", f"release:{release}", "test analyst"),
            ("audit", f"audit:{audit}", "test custodian"),
            ("delete", "table:ward.csv", "test custodian"),
        ]
        head = client.get("/audit-log/head").json()
        last = client.get(f"/audit-log?after={head['entries'] - 2}").json()
    assert head["broken"] is None
    assert [entry["digest"] for entry in last] == [head["digest"]]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store.db") as opened:
        yield opened


def filled(store: Store) -> AuditLog:
    for number in range(5):
        Tokens(store).create(f"ward {number}", Role.FEED)
    log = AuditLog(store)
    assert log.first_broken_entry() is None
    assert log.head()["entries"] == 5
    return log


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("change", ["name", "remove", "swap"])
def test_a_change_is_seen(store, at, change):
    log = filled(store)
    with store.transaction() as tx:
        here, other = (tx.get(OWNER, "audit-log", _key(number)) for number in (at, (at + 1) % 5))
        if change == "remove":
            tx.delete(OWNER, "audit-log", _key(at))
        elif change == "swap":
            tx.put(OWNER, "audit-log", _key(at), other)
            tx.put(OWNER, "audit-log", _key((at + 1) % 5), here)
        else:
            tx.put(
                OWNER, "audit-log", _key(at), json.dumps(json.loads(here) | {"name": "nobody"}, sort_keys=True).encode()
            )
    assert log.first_broken_entry() is not None


def test_a_shortened_audit_log_is_found(store):
    log = filled(store)
    with store.transaction() as tx:
        tx.delete(OWNER, "audit-log", _key(4))
    assert log.first_broken_entry() == 4


def _fail_after(_: None) -> None:
    raise RuntimeError


def test_an_act_that_fails_leaves_no_entry(store):
    log = filled(store)
    with pytest.raises(RuntimeError), store.transaction() as tx:
        _fail_after(log.append(tx, "publish", "release:x"))
    assert log.head()["entries"] == 5
    assert log.first_broken_entry() is None


def test_several_processes_write_one_audit_log(store, tmp_path):
    code = (
        "import sys; from reticent.store import Store; from reticent.service.tokens import Role, Tokens\n"
        "with Store.open(sys.argv[1]) as s:\n"
        "    for i in range(20): Tokens(s).create(f'{i}', Role.FEED)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "store.db")]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    log = AuditLog(store)
    assert log.head()["entries"] == 40
    assert log.first_broken_entry() is None
