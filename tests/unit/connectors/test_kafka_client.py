"""Client calls that end."""

from __future__ import annotations

import threading
import time

import pytest

from reticent.connectors.kafka import client, session
from reticent.errors import ConnectorError


@pytest.fixture
def never(monkeypatch):
    """An event that no call lives to see; calls are given up at once."""
    event = threading.Event()
    monkeypatch.setattr(client, "_DEADLINE", 0.01)
    monkeypatch.setattr(client, "_hung_threads", [])
    yield event
    event.set()


def test_results_and_errors_come_through():
    assert client.call_with_deadline(lambda: 7, "seven") == 7
    with pytest.raises(ZeroDivisionError):
        client.call_with_deadline(lambda: 1 // 0, "nothing")


def test_a_call_that_does_not_return_is_left_behind(never):
    with pytest.raises(client.HungError):
        client.call_with_deadline(never.wait, "waiting")


def test_not_without_bound(never):
    for _ in range(client._MAX_HUNG):
        with pytest.raises(client.HungError):
            client.call_with_deadline(never.wait, "waiting")
    with pytest.raises(ConnectorError):
        client.call_with_deadline(lambda: 7, "seven")


class Member:
    """A consumer that has, or has lost, its place in the group."""

    def __init__(self, number: str | None) -> None:
        self.memberid = lambda: number
        self.consumer_group_metadata = lambda: "place"


@pytest.mark.parametrize(("number", "ago"), [(None, 0.0), ("", 0.0), ("m1", 11.0)])
def test_a_worker_without_its_place_in_the_group_does_not_commit(number, ago):
    """The broker compares places, but lets an empty one pass."""
    held = session.Session.__new__(session.Session)
    held._settings, held._consumer = session.Settings(), Member(number)
    with pytest.raises(client.SessionLostError):
        held._membership(time.monotonic() - ago)
    held._consumer = Member("m1")
    assert held._membership(time.monotonic()) == "place"
