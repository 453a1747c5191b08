"""Questions are answered in a process of their own: the same answers, the same errors, and no harm when it ends."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from serving import InThread, csv, feed_policy, lines, until_done

from reticent.datasets import feed, hospital
from reticent.service import questions
from reticent.service.demo import rename_persons
from reticent.service.problems import ServiceError
from reticent.service.query_process import QueryProcess, ReleaseHandle, open_received_release

HIDDEN = ("patient_id", "name", "birth_date", "admission_date", "ward", "postcode", "admission_route")
POLICY = {
    "version": 1,
    "person": "patient_id",
    "columns": dict.fromkeys(HIDDEN, "identifier")
    | {"sex": "quasi", "region": "quasi", "length_of_stay": "quasi", "diagnosis": "sensitive"},
    "privacy": {"k": 3, "suppression": 0.05},
    "table": {"method": "mondrian"},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = InThread(tmp_path_factory.mktemp("asking"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def release(running):
    with running.client() as client:
        table = client.post("/tables", content=csv(hospital.generate(300, 3)), headers={"Content-Type": "text/csv"})
        job = client.post(f"/tables/{table.json()['id']}/jobs", json={"policy": POLICY})
        return until_done(client, job.raise_for_status().json()["id"])["release"]


def here(place: ReleaseHandle):
    return open_received_release(*place.load())


def test_a_release_answers_as_its_recipient_would_count(running, release):
    place = running.hub.releases.handle(release)
    about = running.hub.query_process.ask(place, questions.summarize)
    assert about == questions.summarize(here(place))
    asked = ([], [], [about.sensitive], False)
    answer = running.hub.query_process.ask(place, questions.count_or_share, *asked)
    assert answer.to_list() == questions.count_or_share(here(place), *asked).to_list()


def test_a_stream_answers_too(running):
    from reticent.service.pages.explore import open_release

    with running.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "one"}
        body = lines(rename_persons(feed.generate(400, 1), "W"))
        client.post("/streams/s/records", content=body, headers=headers).raise_for_status()
    place = open_release(running.hub, "stream:s")
    assert running.hub.query_process.ask(place, questions.summarize).records == 400
    assert running.hub.query_process.ask(place, questions.windows, "influenza") == questions.windows(
        here(place), "influenza"
    )
    assert running.hub.query_process.ask(place, questions.most_uneven_value) == questions.most_uneven_value(here(place))


def test_what_is_wrong_with_a_question_is_told(running, release):
    place = running.hub.releases.handle(release)
    with pytest.raises(ServiceError, match="column"):
        running.hub.query_process.ask(place, questions.count_or_share, [], ["nothing=1"], [], False)
    assert running.hub.query_process.ask(place, questions.summarize).records


def test_the_process_may_end_and_comes_again(running, release):
    place, asking = running.hub.releases.handle(release), running.hub.query_process
    asking.ask(place, questions.summarize)
    asking._process._process.kill()
    asking._process._process.join()
    assert asking.ask(place, questions.summarize).records
    os.kill(asking._process._process.pid, signal.SIGSTOP)
    timer = threading.Timer(0.5, asking._process._process.kill)
    timer.start()
    with pytest.raises(ServiceError, match="ended early"):
        asking.ask(place, questions.summarize)
    timer.join()
    assert asking.ask(place, questions.summarize).records


def test_a_release_that_cannot_be_loaded_harms_nobody_after(running, release):
    def gone():
        raise ServiceError(404, "not-found", "There is no such release.", "Check its id.")

    asking = QueryProcess()
    with pytest.raises(ServiceError, match="no such release"):
        asking.ask(ReleaseHandle("gone", gone), questions.summarize)
    assert asking.ask(running.hub.releases.handle(release), questions.summarize).records
    asking.close()


@pytest.mark.skipif(not hasattr(os, "nice"), reason="only POSIX systems let a process step back")
def test_it_lets_others_go_first(running, release):
    running.hub.query_process.ask(running.hub.releases.handle(release), questions.summarize)
    asking = os.getpriority(os.PRIO_PROCESS, running.hub.query_process._process._process.pid)
    assert asking == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
