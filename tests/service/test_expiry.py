"""What is older than the operator wants it kept is gone: from the lists, from the files of the store, from the folders next to it."""

from __future__ import annotations

import datetime as dt

import pytest
from serving import InThread, csv, until_done
from store_scenes import BASE, people

from reticent.errors import PolicyError
from reticent.service.expiry import parse_days

CANARY = b"Zyxwv8731Qq"
KEEP = {"jobs": 30.0, "tables": 7.0, "releases": 90.0}
RULES = BASE | {
    "columns": BASE["columns"] | {"line": "plain"},
    "privacy": {"l": 3, "suppression": 0.2},
    "table": {"method": "anatomy"},
}


def later(days):
    return dt.datetime.now(dt.UTC) + dt.timedelta(days=days)


def holding(folder):
    return [path for path in folder.rglob("*") if path.is_file() and CANARY in path.read_bytes()]


@pytest.fixture
def running(tmp_path):
    server = InThread(tmp_path, keep=KEEP)
    yield server
    server.close()


def publish(client):
    """A table with a value that nobody else has, and its release; the value is published, too."""
    rows = people(0, 60)
    rows = rows.set_column(4, "ill", [[f"illness {CANARY.decode()}", *rows.column("ill").to_pylist()[1:]]])
    table = client.post("/tables", content=csv(rows), headers={"Content-Type": "text/csv"}).json()["id"]
    job = client.post(f"/tables/{table}/jobs", json={"policy": RULES}).raise_for_status().json()["id"]
    done = until_done(client, job)
    assert done["state"] == "done", done
    return table, job, done["release"]


def test_nothing_goes_before_its_time(running):
    with running.client() as client:
        publish(client)
        assert running.hub.expiry.sweep(later(6)) == dict.fromkeys(KEEP, 0)


def test_each_kind_goes_in_its_time_and_leaves_nothing(running, tmp_path):
    with running.client() as client:
        table, job, release = publish(client)
        client.get(f"/releases/{release}/download").raise_for_status()
        packed = running.hub.policy_registry.folder
        assert holding(tmp_path)
        assert list(packed.rglob("*.zip"))
        assert running.hub.expiry.sweep(later(8)) == {"jobs": 0, "tables": 1, "releases": 0}
        assert client.get(f"/tables/{table}").status_code == 404
        assert client.get(f"/releases/{release}/download").status_code == 200
        assert running.hub.expiry.sweep(later(31))["jobs"] == 1
        assert client.get(f"/jobs/{job}").status_code == 404
        assert running.hub.expiry.sweep(later(91))["releases"] == 1
        assert client.get(f"/releases/{release}/download").status_code == 410
        assert not list(packed.rglob("*.zip"))
        assert not holding(tmp_path)
        assert running.hub.expiry.sweep(later(92)) == dict.fromkeys(KEEP, 0)


def test_the_same_table_is_not_published_anew_when_its_release_is_gone(running):
    with running.client() as client:
        publish(client)
        running.hub.expiry.sweep(later(91))
        _, _, release = publish(client)
        assert client.get(f"/releases/{release}/download").status_code == 410
        assert len(client.get("/releases").json()) == 1


@pytest.mark.parametrize("word", ["jobs", "jobs=x", "people=3", "tables=-1", "jobs=nan", "jobs=inf", "jobs=1e9"])
def test_words_that_say_nothing_are_refused(word):
    with pytest.raises(PolicyError, match="--keep"):
        parse_days([word])
    assert parse_days(["jobs=3", "tables=0.5"]) == {"jobs": 3.0, "tables": 0.5}
