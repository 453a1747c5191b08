"""The demonstration: synthetic data of a hospital with a live stream, an evolving table and a series."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from reticent.connectors.files import to_ndjson
from reticent.datasets import feed, hospital, series
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.service.pages import drafts
from reticent.service.pages.plan import Plan
from reticent.service.policy_registry import parse_policy
from reticent.service.routes.audits import audit
from reticent.service.routes.evolving import change_table
from reticent.service.routes.feeds import PushStep
from reticent.service.routes.series import queue_release
from reticent.service.routes.tables import store_table
from reticent.service.uploads import NDJSON

if TYPE_CHECKING:
    from reticent.service.hub import Hub

LOG = logging.getLogger(__name__)
STREAM, EVOLVING, SERIES = "admissions", "hospital", "patients"
TABLE, CLINIC = "hospital.csv", "clinic.csv"
# The stream starts with ten days of records and an outbreak in the middle of them.
_PAST_RECORDS, _OUTBREAK, _PUSH_SIZE = 12_000, "influenza", 1_000
_SEED = 2026
_ROWS = 3_000
_BATCH, _PAUSE = 5, 0.25


class Demo:
    """Fills the store once and feeds the stream while the server runs."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reticent-demo", daemon=True)

    def __enter__(self) -> Self:
        is_new = STREAM not in self._hub.streams
        fill(self._hub, _ROWS)
        self._thread.start()
        if is_new:
            threading.Thread(
                target=add_drafts_and_audit, args=(self._hub,), name="reticent-demo-audit", daemon=True
            ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        stream = self._hub.stream(STREAM)
        skip = stream.publication.engine.counts.input
        for batch in feed.batches(skip + 2_000_000, _SEED, _BATCH):
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            if self._stop.wait(_PAUSE):
                return
            try:
                self._hub.writer.submit(PushStep(stream, ndjson_bytes(batch), NDJSON, None)).result(30)
            except Exception as error:  # noqa: BLE001 - the server is stopping, or says so itself
                LOG.warning("the feed of the demonstration stopped: %s", type(error).__name__)
                return


def fill(hub: Hub, rows: int) -> None:
    """Create the sources of the demonstration, unless they exist already."""
    if STREAM in hub.streams:
        return
    prior, kernel, updates = map(csv_text, (feed.strata(), feed.kernel(), series.updates()))
    hub.create("stream", STREAM, parse_policy(policy_yaml("feed"), {"prior.csv": prior, "kernel.csv": kernel}))
    files = {"updates.csv": updates, "prior.csv": csv_text(series.prior())}
    hub.create("series", SERIES, parse_policy(policy_yaml("series"), files))
    hub.create("evolving", EVOLVING, parse_policy(policy_yaml("hospital"), {"prior.csv": csv_text(hospital.prior())}))
    table = rename_persons(hospital.generate(rows, _SEED), "H")
    store_table(hub, csv_bytes(table), TABLE)
    half = rows // 2
    evolving = hub.evolving_table(EVOLVING)
    for part in (table.slice(0, half), table.slice(half)):
        change_table(evolving, part)
        hub.jobs.wait(hub.jobs.begin("evolving", EVOLVING, {})["id"])
    for release in series.generate(max(200, rows // 5), 3, _SEED):
        hub.jobs.wait(queue_release(hub, SERIES, csv_bytes(rename_persons(release, "S")))["id"])
    publish_table(hub, rename_persons(hospital.generate(1_000, _SEED + 1), "T"))
    for batch in feed.batches(_PAST_RECORDS, _SEED, _PUSH_SIZE, outbreak=_OUTBREAK):
        hub.writer.submit(PushStep(hub.stream(STREAM), ndjson_bytes(batch), NDJSON, None)).result(30)
    hub.stream(STREAM).trend.clear()  # ten days in a second would distort the rate


def publish_table(hub: Hub, table: pa.Table) -> None:
    """Publish a table with the steps of a custodian: roles, policy, job."""
    plan = Plan.of(hub, store_table(hub, csv_bytes(table), CLINIC)["id"])
    plan.set_role(["ward"], "identifier")  # the ward often discloses the diagnosis
    plan.save(hub)
    policy = hub.accept(plan.bundle(table={"method": "mondrian"}))
    request = {"table": plan.table["id"], "policy_hash": policy.hash, "method": None}
    hub.jobs.wait(hub.jobs.begin("table", CLINIC, request)["id"])


def add_drafts_and_audit(hub: Hub) -> None:
    """Add private drafts of the hospital's table and an audit; both run in the background."""
    try:
        table = next(doc for doc in hub.tables.all() if doc["name"] == TABLE)
        plan = Plan.of(hub, table["id"])
        privacy = {"l": 3, "suppression": 0.02}
        drafts.begin(hub, plan, drafts.table_variants(plan, ["mondrian", "optimal"], [3, 10], privacy))
        release = next(doc for doc in hub.releases.all() if doc["kind"] == "table")
        audit(hub, [release["id"]], report=True)
    except Exception as error:  # noqa: BLE001 - the server is stopping, or says so itself
        LOG.warning("the audit of the demonstration stopped: %s", type(error).__name__)


def rename_persons(table: pa.Table, letter: str) -> pa.Table:
    """Return the same records of other people, since nobody may be in two publications of one store."""
    names = pc.replace_substring(table["patient_id"], "P", letter)
    return table.set_column(table.column_names.index("patient_id"), "patient_id", names)


def csv_bytes(table: pa.Table) -> bytes:
    """Return a table as the bytes of a CSV file."""
    return csv_text(table).encode()


def ndjson_bytes(table: pa.Table) -> bytes:
    """Return a table as lines of JSON."""
    return b"".join(map(to_ndjson, table.to_batches()))
