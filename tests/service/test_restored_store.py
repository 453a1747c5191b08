"""A server whose store was put back: nobody is released anew, subscribers are told, and tokens that were revoked stay revoked."""

from __future__ import annotations

import httpx
from serving import NDJSON, InThread, feed_policy, lines

from reticent.datasets import feed
from reticent.service.tokens import Role
from reticent.store.backup import backup, restore


def push(client: httpx.Client, rows: int, seed: int, key: str) -> httpx.Response:
    headers = {"Content-Type": NDJSON, "Idempotency-Key": key}
    return client.post("/streams/s/records", content=lines(feed.generate(rows, seed)), headers=headers)


def test_an_older_store_releases_nobody_anew(tmp_path):
    store, copy = tmp_path / "store.db", tmp_path / "old.db"
    running = InThread(tmp_path)
    try:
        token = running.tokens[Role.CUSTODIAN]
        with running.client() as client:
            client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
            push(client, 5, 1, "k0").raise_for_status()
            backup(store, copy)
            push(client, 5, 2, "k1").raise_for_status()
            cursor = client.get("/streams/s/records").headers["reticent-cursor"]
    finally:
        running.close()
    for published, closed in (([], True), (["stream:s=2"], True), (["stream:s=1"], False)):
        outcome = restore(copy, store, published)["stream:s"]
        assert bool(outcome.closed) == closed
        running = InThread(tmp_path)
        try:
            refused = httpx.get(f"{running.root}/api/v1/streams", headers={"Authorization": f"Bearer {token}"})
            assert refused.status_code == 401  # whether it was revoked since, the store cannot know
            with running.client() as client:
                ahead = client.get("/streams/s/records", params={"cursor": int(cursor) + 1})
                assert (ahead.status_code, ahead.json()["error"]["code"]) == (409, "ahead")
                again = push(client, 5, 2, "k1")
                assert (again.status_code >= 400) == closed
                shown = client.get("/streams/s/records").content.splitlines()
                assert len([line for line in shown if b'"record"' in line]) == (5 if closed else 10)
        finally:
            running.close()
