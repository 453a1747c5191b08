"""Publishing a table asks the ledger; drafts publish nothing; what is withdrawn or stopped is handed out no more."""

from __future__ import annotations

import httpx
import pytest
from serving import InThread, csv

from reticent.datasets import feed, hospital
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.errors import PolicyError
from reticent.service.demo import ndjson_bytes, rename_persons
from reticent.service.draft_measures import measure
from reticent.service.pages import drafts
from reticent.service.pages.explore import open_release
from reticent.service.pages.plan import Plan, parse_spec, spec_text
from reticent.service.pages.publish import ask_ledger
from reticent.service.problems import ServiceError
from reticent.service.routes.tables import store_table
from reticent.service.tokens import Role, Tokens
from reticent.service.uploads import read_upload

CSV = {"Content-Type": "text/csv"}
PRIVACY = {"suppression": 0.05, "l": 2}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    pytest.importorskip("nicegui")
    server = InThread(tmp_path_factory.mktemp("asks"), studio=True)
    yield server
    server.close()


@pytest.fixture(scope="module")
def plan(running):
    table = rename_persons(hospital.generate(300, 1), "A").drop_columns(["birth_date", "admission_date", "ward"])
    return Plan.of(running.hub, store_table(running.hub, csv(table), "a.csv")["id"])


def publish(running, plan, k, *, allow_republication=False):
    policy = running.hub.accept(plan.bundle(privacy=PRIVACY | {"k": k}, table={"method": "mondrian"}))
    request = {
        "table": plan.table["id"],
        "policy_hash": policy.hash,
        "method": None,
        "allow_republication": allow_republication,
    }
    job = running.hub.jobs.begin("table", "a.csv", request)
    return running.hub.jobs.wait(job["id"])


def test_a_draft_publishes_nothing_and_the_ledger_is_asked(running, plan):
    hub = running.hub
    drafts.begin(hub, plan, drafts.table_variants(plan, ["mondrian"], [3], PRIVACY))
    (draft,) = drafts.of_table(hub, plan.table["id"])
    job = next(job for job in hub.jobs.documents.all() if job["kind"] == "draft")
    assert hub.jobs.wait(job["id"])["state"] == "done"
    (draft,) = drafts.of_table(hub, plan.table["id"])
    assert draft["figures"]["records"]["input"] == 300
    assert set(drafts.measures(draft["figures"])) == set(drafts.MEASURES)
    assert hub.releases.all() == []
    assert ask_ledger(hub, draft).elsewhere == 0

    first = publish(running, plan, 3)
    assert first["state"] == "done", first
    assert publish(running, plan, 3)["release"] == first["release"]  # the same table and policy: the same release
    assert ask_ledger(hub, draft).elsewhere == 300
    second = publish(running, plan, 5)
    assert (second["state"], second["error"]["code"]) == ("failed", "guarantee")
    assert "300 of 300 people" in second["error"]["message"]
    assert len(hub.releases.all()) == 1
    again = publish(running, plan, 5, allow_republication=True)
    assert again["state"] == "done"
    words = hub.releases.get(again["release"])["guarantee"]["not_covered"]
    assert any("other publications of the same store" in word for word in words)


def test_what_is_withdrawn_is_not_handed_out(running, plan):
    ident = publish(running, plan, 3)["release"]
    with running.client() as client:
        assert client.get(f"/releases/{ident}/download").status_code == 200
        assert client.post(f"/releases/{ident}/withdraw").json()["withdrawn"]
        assert client.get(f"/releases/{ident}/download").status_code == 410
    with httpx.Client(base_url=running.root) as browser:
        browser.post("/sign-in", data={"token": running.tokens[Role.ANALYST]})
        assert browser.get(f"/release/{ident}/csv.zip").status_code == 410
        shown = browser.get(f"/release?id={ident}").text
        assert "Withdrawn" in shown
        assert ": first of " not in shown
    with pytest.raises(ServiceError):
        open_release(running.hub, ident)


def test_a_browser_gets_a_release_piece_by_piece_within_its_scope(running):
    newest = next(doc for doc in running.hub.releases.all() if not doc["withdrawn"])
    where = f"/release/{newest['id']}/csv.zip"
    other = Tokens(running.hub.store).create("other", Role.ANALYST, scope=["stream:x"])[0]
    for token, status in ((running.tokens[Role.ANALYST], 200), (other, 404), (None, 303)):
        with httpx.Client(base_url=running.root) as browser:
            if token:
                browser.post("/sign-in", data={"token": token})
            assert browser.get(where).status_code == status
            assert browser.get("/release/..%2f..%2fetc/csv.zip").status_code in (303, 404, 422)


def test_loss_weighs_no_column(running, plan):
    """A draft that favours a column is compared by the same measure as all others."""
    table = read_upload(running.hub.tables.blob(plan.table["id"]))
    quasi = [name for name, role in plan.roles.items() if role == "quasi"]
    weights = dict.fromkeys(quasi, 1.0) | {"sex": 50.0}
    for section in ({"method": "optimal"}, {"method": "optimal", "weights": weights}):
        policy = running.hub.policy_registry.policy(plan.bundle(privacy=PRIVACY | {"k": 3}, table=section))
        figures = measure(table, policy)
        losses = [one["loss"] for one in figures["columns"] if one["loss"] is not None]
        assert figures["loss"] == pytest.approx(sum(losses) / len(quasi))


def test_added_persons_are_counted_once(running, plan):
    (first, *_) = sorted(running.hub.releases.all(), key=lambda doc: doc["created"])
    assert (first["persons"], first["added"]) == (300, 300)


def test_a_stopped_stream_takes_nothing_until_it_goes_on(running):
    files = {"prior.csv": csv_text(feed.strata()), "kernel.csv": csv_text(feed.kernel())}
    body = {"name": "s", "policy": policy_yaml("feed"), "files": files}
    batch = ndjson_bytes(next(feed.batches(40, 7, 40)))
    with running.client() as client:
        client.post("/streams", json=body).raise_for_status()
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "one"}
        assert client.post("/streams/s/records", content=batch, headers=headers).status_code == 200
        stream = running.hub.stream("s")
        assert client.post("/streams/s/stop").json()["stopped"]
        refused = client.post("/streams/s/records", content=batch, headers=headers | {"Idempotency-Key": "two"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "stopped")
        assert client.post("/streams/s/records", content=batch, headers=headers).status_code == 200  # sent again
        stream.drop()
        assert stream.publication
        assert stream.stopped  # the store remembers
        assert not client.post("/streams/s/resume").json()["stopped"]
        assert stream.trend


@pytest.mark.parametrize(
    "text", ["North: Aberdeen, Elgin\nSouth: Dover", "Isle: North, South\nNorth: Elgin\nSouth: Dover"]
)
def test_a_tree_is_read_as_it_was_written(text):
    spec = parse_spec("tree", text)
    assert parse_spec(*spec_text(spec)) == spec


def test_a_policy_that_does_not_fit_is_not_taken(running, plan):
    before = plan.yaml()
    with pytest.raises(PolicyError):
        plan.adopt(running.hub, "version: 1\ncolumns: {other: quasi}\nprivacy: {k: 2}\n", {})
    assert plan.yaml() == before
    again = Plan(plan.table, {}, why=dict(plan.why))
    again.adopt(running.hub, before, {})
    assert again.yaml() == before
