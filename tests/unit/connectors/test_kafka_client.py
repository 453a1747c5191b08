"""Client calls that end."""

from __future__ import annotations

import threading

import pytest

from reticent.connectors.kafka import client
from reticent.errors import ConnectorError


@pytest.fixture
def never(monkeypatch):
    """An event that no call lives to see; calls are given up at once."""
    event = threading.Event()
    monkeypatch.setattr(client, "_DEADLINE", 0.01)
    monkeypatch.setattr(client, "_left", [])
    yield event
    event.set()


def test_results_and_errors_come_through():
    assert client.within(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        client.within(lambda: 1 // 0)


def test_a_call_that_does_not_return_is_left_behind(never):
    with pytest.raises(client.HungError):
        client.within(never.wait)


def test_not_without_bound(never):
    for _ in range(client._MOST):
        with pytest.raises(client.HungError):
            client.within(never.wait)
    with pytest.raises(ConnectorError):
        client.within(lambda: 7)
