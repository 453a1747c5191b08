"""The same persons again: the function behind `reticent republish`.

One transaction of the store holds the release, the history it belongs to and the ledger entry. Only then is the folder written. After a crash in
between, the same call with the same data delivers the stored release; making another one would be a second publication of the same people.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.audit import verify
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.engine.series.publisher import SeriesPublisher
from reticent.errors import InternalError, StateError
from reticent.release import Ledger, LedgerEntry
from reticent.release.codec import digest, from_bytes, to_bytes
from reticent.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.store import OutboxEntry, Snapshot

NAME = "series"
"""The publisher's name in the store."""


def republish(
    table: pa.Table,
    policy: Policy,
    store: str | os.PathLike[str],
    folder: str | Path,
    *,
    seed: int | None = None,
    form: str = "csv",
) -> Release:
    """Publishes the table as the next release of the series that the store remembers.

    Args:
        table: all records as they are now, with exactly the columns of the policy.
        policy: the policy the series was begun under.
        store: path or URL of the private store; made when it is not there.
        folder: a new folder for the release.
        seed: makes a new series repeatable, for tests only.
        form: csv or parquet.

    Raises:
        GuaranteeError: the policy cannot be met; nothing was published and the store is unchanged.
    """
    given = digest(table)
    first = None if Store.exists(store) else _made(None, table, policy, seed)  # refused: not even a store is made
    with Store.open(store) as kept:
        kept.register(NAME, policy_hash=policy.hash, secret=None if first is None else first.secret)
        with kept.lock(NAME):
            waiting = list(kept.unsent(NAME))
            if waiting:
                release, number = _waiting(waiting[0], given)
            else:
                made = _still_first(kept, first) if first else _made(kept, table, policy, seed)
                release, number = made.release, _keep(kept, made, given)
            release.to_dir(folder, format=form)
            kept.mark_sent(NAME, number)
            with kept.transaction() as step:
                step.forget_sent(NAME, number - 1)
    return release


@dataclass(frozen=True, repr=False)
class _Made:
    """A verified release on its way into the store, and the history it belongs to."""

    release: Release
    payload: bytes
    state: bytes
    entry: LedgerEntry
    persons: npt.NDArray[np.uint64]
    groups: npt.NDArray[np.int64]
    secret: bytes


def _still_first(kept: Store, first: _Made) -> _Made:
    if kept.key(NAME) != first.secret or kept.snapshot(NAME) is not None:
        raise StateError("Another process has begun this series meanwhile.", hint="Run the command again.")
    return first


def _waiting(entry: OutboxEntry, given: str) -> tuple[Release, int]:
    """The release that was made but not delivered."""
    if entry.position != given:
        raise StateError(
            "The last release of this series was made but not written to its folder.",
            hint="Run the same command with the data of that release first.",
        )
    return from_bytes(entry.payload), entry.number


def _made(kept: Store | None, table: pa.Table, policy: Policy, seed: int | None) -> _Made:
    secret = os.urandom(32) if kept is None else kept.key(NAME)
    state = None if kept is None else kept.snapshot(NAME)
    engine = _engine(policy, state, Rng(secret) if seed is None else Rng.from_seed(seed))
    earlier = [] if kept is None else [from_bytes(entry.payload) for entry in kept.outbox(NAME)]
    engine.push(table)
    (release,) = engine.cut()
    ledger = Ledger() if kept is None else kept.ledger(NAME)
    payload = to_bytes(release)
    persons, groups = engine.history.members(engine.releases)
    entry = LedgerEntry(
        number=engine.releases,
        time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        policy_hash=policy.hash,
        method=release.method,
        counts=release.counts,
        digest=hashlib.sha256(payload).hexdigest(),
    )
    ledger.record(entry, persons, groups)
    verdict = verify([*earlier[-1:], release], policy, ledger=ledger)
    if not verdict.holds:
        raise InternalError(f"The judge refuted the release ({', '.join(f.claim for f in verdict.refuted)}).")
    return _Made(release, payload, engine.snapshot(), entry, persons, groups, secret)


def _keep(kept: Store, made: _Made, given: str) -> int:
    with kept.transaction() as step:
        number = step.put_outbox(NAME, "release", made.payload, position=given)
        step.put_snapshot(NAME, made.state)
        step.record_ledger(NAME, made.entry, made.persons, made.groups)
    return number


def _engine(policy: Policy, state: Snapshot | None, rng: Rng) -> SeriesPublisher:
    kind = publisher_class(NAME, policy.series.method)
    engine = kind(policy, rng=rng) if state is None else kind.restore(policy, state.payload)
    if not isinstance(engine, SeriesPublisher):
        raise InternalError("A series model is not a series engine.")
    return engine
