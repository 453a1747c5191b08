"""One ledger over all publications of a store: a person in one publication is not published in another one unnoticed.

Guarantee: against an attacker who combines two publications of one store: a person in one of them is refused in every other one
    (GuaranteeError), unless both use the same veil key and compose, or the custodian allows republication; the release then says so.
    Within one publication the gate verifies, and nothing here overrides it.
    Tables, evolving tables and series with the same veil key compose for a person if both have the same first event and at most one
    of them has later events; with a transition kernel, only if no other one has later events (`FirstEvents`). Streams, and series
    with a kernel, change with every record or release, so they share no person.
Not covered: persons under different identifiers (`reticent.encode.columns` says which are equal); other stores; records without a person.
Cost: 8 bytes per person and publication; one hash per record; one small query per commit.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from reticent import _core
from reticent.arrays import UInt64s
from reticent.encode.columns import normalize_names, to_native
from reticent.engine import publisher_class
from reticent.engine.base import ShownEvents
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.publication.identifier_variants import warn_of_new_variants, warn_of_variants
from reticent.release import Kind
from reticent.release.wording import REPUBLICATION
from reticent.store import Store, Transaction, schema
from reticent.store.database import select_rows

_HAS_LATER_EVENTS = 1


class FirstEvents:
    """First events by person, flagged if later events exist, in this publication and in others with the same veil key.

    The veil of a person is a function of key, person and value, so two publications with the same first event show the same
    candidates. Later events move the false candidates by the same keyed steps in every publication. If two publications had later
    events with different true values, the candidate that differs would be the true value. If only the other publication had moved
    the false candidates, the candidate that did not move would be the true value.
    """

    def __init__(self, *, moving: bool) -> None:
        self._moving = moving
        self._own: dict[int, int] = {}
        self._others: dict[int, set[int]] = {}

    def load(self, shown: bytes, *, own: bool) -> None:
        """Load the first events that a publication recorded."""
        persons, events = np.frombuffer(shown, "<u8").reshape(2, -1).tolist()
        for person, event in zip(persons, events, strict=True):
            if own:
                self._own[person] = self._own.get(person, event) | (event & _HAS_LATER_EVENTS)
            else:
                self._others.setdefault(person, set()).add(event)

    def count_conflicts(self, events: ShownEvents) -> int:
        """Count the persons whose events do not compose with those in another publication."""
        return sum(
            any(not self._can_compose(event, other) for other in self._others[person])
            for person, event in self._current(events)
            if person in self._others
        )

    def encode_new(self, events: ShownEvents) -> bytes:
        """Encode and remember the persons who are new or have their first later event.

        Exclusive events are not recorded: persons without a recorded first event compose with no other publication.
        """
        if events.exclusive:
            return b""
        fresh = [(person, event) for person, event in self._current(events) if self._own.get(person) != event]
        self._own.update(fresh)
        return np.array(list(zip(*fresh, strict=True)), dtype="<u8").tobytes() if fresh else b""

    def _current(self, events: ShownEvents) -> list[tuple[int, int]]:
        """Return the first event of each person in this publication, flagged if the person has later events."""
        flagged = (events.first_hashes & ~np.uint64(_HAS_LATER_EVENTS)) | events.has_later.astype(np.uint64)
        pairs = zip(events.persons.tolist(), flagged.tolist(), strict=True)
        return [(person, self._own.get(person, event) | (event & _HAS_LATER_EVENTS)) for person, event in pairs]

    def _can_compose(self, one: int, other: int) -> bool:
        """Whether a person's events in this publication compose with those in another publication."""
        first, has_later = (
            one & ~_HAS_LATER_EVENTS,
            other & (_HAS_LATER_EVENTS if self._moving else one & _HAS_LATER_EVENTS),
        )
        return first != 0 and first == other & ~_HAS_LATER_EVENTS and not has_later


_LOCK_TIMEOUT = 30.0
# A cache of recorded persons. A person whom another one displaces is recorded twice, which is harmless.
_CACHE_SIZE = 1 << 20
_CACHE_MASK = np.uint64(_CACHE_SIZE - 1)
_LAST_ID = sa.text(f"SELECT max(id) FROM {schema.population.name}")  # noqa: S608 - a name of our own
_ROWS_SINCE = select_rows(schema.population, "id > :seen ORDER BY id")
_EVERYBODY = np.uint64(2**64 - 1)
"""Stands for all persons: a publication that does not report its persons to the ledger claims everybody."""


class Population:
    """The persons of one publication, compared with those of all others in its store."""

    def __init__(
        self,
        store: Store,
        publisher: str,
        policy: Policy,
        *,
        kind: Kind,
        method: str,
        allow_republication: bool = False,
    ) -> None:
        self._store, self._publisher, self._policy = store, publisher, policy
        self._kind, self._method, self._allow_republication = kind, method, allow_republication
        # Linked tables have no veil parameters: their persons compose with no other publication.
        self._parameters_digest = publisher_class(kind, method).pin_digest(policy) if policy.tables is None else ""
        moving = bool(self._parameters_digest) and publisher_class(kind, method).has_kernel(policy)
        alone = kind == "stream" or (kind == "series" and moving)
        self._first_events = None if alone or not self._parameters_digest else FirstEvents(moving=moving)
        self._hasher = _core.stream.Hasher(store.population_key)
        self._recorded = np.zeros(_CACHE_SIZE, dtype=np.uint64)
        self._others: UInt64s = np.zeros(0, dtype=np.uint64)
        self._seen = 0
        self.shared = 0
        """The number of persons who are in other publications too, if republication is allowed."""
        self._load()

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Additional statements of what a release of these persons does not cover."""
        return (REPUBLICATION,) if self.shared else ()

    def hash_persons(self, persons: pa.ChunkedArray | pa.Array | None) -> UInt64s:
        """Hash the persons of the records, in order; empty if the policy names no person column."""
        if persons is None or not len(persons):
            return np.zeros(0, dtype=np.uint64)
        column = normalize_names(persons if isinstance(persons, pa.ChunkedArray) else pa.chunked_array([persons]))
        hashes = self._hash_names(column)
        if self._kind != "stream":
            self._warn_of_variants(column, hashes)
        return hashes

    def _hash_names(self, names: pa.ChunkedArray | pa.Array) -> UInt64s:
        rows = pa.RecordBatch.from_arrays([to_native(names)], names=["person"])
        return np.asarray(self._hasher.read(rows.__arrow_c_array__(), [], 0, 0).persons, dtype=np.uint64)

    def _warn_of_variants(self, names: pa.ChunkedArray, hashes: UInt64s) -> None:
        """Warn of identifier variants within this publication and of persons known to the store."""
        if self._kind != "table":  # tables are checked when they are read, with or without a store
            warn_of_variants(names)
        is_new = self._recorded[hashes & _CACHE_MASK] != hashes
        if self._seen and is_new.any():
            rows = self._store.query_rows(schema.population, _ROWS_SINCE, seen=0)
            known = np.concatenate([np.frombuffer(row["persons"], "<u8") for row in rows])
            is_new &= ~np.isin(hashes, known)
            if is_new.any():
                warn_of_new_variants(to_native(names).filter(pa.array(is_new)), self._hash_names, known)

    def hash_table_persons(self, table: pa.Table) -> UInt64s:
        """Hash the persons of a table, in row order."""
        return self.hash_persons(None if self._policy.person is None else table.column(self._policy.person))

    def refuse_shared_persons(self, persons: UInt64s) -> None:
        """Refuse persons who are in another publication.

        Raises:
            GuaranteeError: some persons are in a publication that does not compose with this one.
        """
        if not len(self._others):
            return
        persons = np.unique(persons)
        self._refuse(self.count_elsewhere(persons), len(persons), "")

    def count_elsewhere(self, persons: UInt64s) -> int:
        """Count the distinct persons who are in publications that do not compose with this one."""
        if len(self._others) and (self._others[-1] == _EVERYBODY or _EVERYBODY in persons):
            return len(persons)
        return int(np.isin(persons, self._others, assume_unique=True).sum()) if len(self._others) else 0

    def hash_everybody(self) -> UInt64s:
        """Return the marker for all persons, for a table whose policy names no person column: no other publication may share its store.

        Raises:
            GuaranteeError: the store has other publications.
        """
        if len(self._others) and not self._allow_republication:
            raise GuaranteeError(
                "The policy has no `person:`, so the people in this table cannot be compared with earlier publications of this store. "
                "Nothing was published.",
                hint="Set person: to the identifier column, or use a separate store for people who are in no other store. "
                "--allow-republication publishes anyway, and the release records this.",
            )
        self.shared += len(self._others)
        return np.array([_EVERYBODY])

    def claim_everybody(self) -> None:
        """Claim all persons for this publication: records processed on many machines are not reported to the ledger one by one.

        Raises:
            GuaranteeError: the store has other publications.
        """
        with self._store.lock(self._publisher, wait=_LOCK_TIMEOUT), self._store.transaction() as tx:
            self._load()
            if self._recorded[_EVERYBODY & _CACHE_MASK] != _EVERYBODY:
                if len(self._others) and not self._allow_republication:
                    raise GuaranteeError(
                        "This store has other publications, and this publication does not report its persons to the ledger.",
                        hint="Use a separate store for people who are in no other store, or add --allow-republication.",
                    )
                self.shared = len(self._others)
                self.record(tx, np.array([_EVERYBODY]))

    def refuse_conflicts(self, events: ShownEvents | None) -> None:
        """Refuse persons whose events in another publication with the same veil key do not compose with these.

        Raises:
            GuaranteeError: two different veils of one person would disclose the true value.
        """
        if self._first_events is not None and events is not None:
            where = " with the same veil key, but with another value or later events"
            self._refuse(self._first_events.count_conflicts(events), len(events.persons), where)

    def _refuse(self, shared: int, persons: int, where: str) -> None:
        if shared and not self._allow_republication:
            raise GuaranteeError(
                f"{shared:,} of {persons:,} people were already released from this store{where}. Nothing was published.",
                hint="Run `reticent ledger` to list the publications. Two releases of the same people can disclose more than each alone; "
                "--allow-republication publishes anyway, and the release records this.",
            )
        self.shared += shared

    def record(self, tx: Transaction, persons: UInt64s, events: ShownEvents | None = None) -> None:
        """Record persons in the transaction that publishes them. Refuse persons whom another publication recorded meanwhile."""
        new = _unique_persons(persons[self._recorded[persons & _CACHE_MASK] != persons])
        if (tx.value(_LAST_ID) or 0) != self._seen:
            self._load()
            self.refuse_shared_persons(new)
            self.refuse_conflicts(events)
        shown = b"" if self._first_events is None or events is None else self._first_events.encode_new(events)
        known = self._first_events is not None and events is not None and not events.exclusive
        if not shown and (known or not len(new)):  # an entry without events composes with no publication
            return
        tx.record_population(
            self._publisher,
            time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            policy_hash=self._policy.hash,
            method=self._method,
            parameters_digest=self._parameters_digest,
            persons=new.astype("<u8").tobytes(),
            first_events=shown,
        )
        self._seen = int(tx.value(_LAST_ID))
        self._recorded[new & _CACHE_MASK] = new

    def _load(self) -> None:
        """Read what the store has recorded since the last call."""
        others = [self._others]
        for row in self._store.query_rows(schema.population, _ROWS_SINCE, seen=self._seen):
            self._seen = row["id"]
            persons = np.frombuffer(row["persons"], "<u8")
            own = row["publisher"] == self._publisher
            if own:
                self._recorded[persons & _CACHE_MASK] = persons
            if (
                self._first_events is not None
                and row["parameters_digest"] == self._parameters_digest
                and row["first_events"]
            ):
                self._first_events.load(row["first_events"], own=own)
            elif not own:
                others.append(persons)
        self._others = np.unique(np.concatenate(others))


def _unique_persons(persons: UInt64s) -> UInt64s:
    """Return each person once. The values are hashes, so sorting is faster than hashing them again."""
    ordered = np.sort(persons)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def summarize_publications(store: Store) -> dict[str, dict[str, object]]:
    """Summarize each publication of a store: its persons, method and times, and how many persons are in others too."""
    persons: dict[str, list[UInt64s]] = {}
    about: dict[str, dict[str, object]] = {}
    for row in store.query_rows(schema.population, _ROWS_SINCE, seen=0):
        persons.setdefault(row["publisher"], []).append(np.frombuffer(row["persons"], "<u8"))
        first = about.get(row["publisher"], {}).get("first", row["time"])
        about[row["publisher"]] = {
            "method": row["method"],
            "policy_hash": row["policy_hash"],
            "first": first,
            "last": row["time"],
        }
    whole = {name: np.unique(np.concatenate(parts)) for name, parts in persons.items()}
    return {
        name: about[name]
        | {
            "persons": int((own != _EVERYBODY).sum()),
            "everybody": bool(_EVERYBODY in own),
            "elsewhere": sum(_shared_mask(own, [o for n, o in whole.items() if n != name])),
        }
        for name, own in whole.items()
    }


def _shared_mask(own: UInt64s, others: list[UInt64s]) -> list[bool]:
    if not others:
        return []
    rest, own = np.concatenate(others), own[own != _EVERYBODY]
    mask: list[bool] = (np.isin(own, rest) | (_EVERYBODY in rest)).tolist()
    return mask
