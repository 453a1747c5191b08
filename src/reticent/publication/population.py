"""One ledger over all publications of a store: whoever stands in one of them is not published in another unnoticed.

Guarantee: against a reader who lays two publications of one store side by side: a person who stands in one of them is refused in
    every other (GuaranteeError), unless both are veiled under the key of the same house and compose, or the custodian says
    `despite`, and then the release says so. Within one publication the gate judges; nothing here overrides it.
    Tables, evolving tables and series of a house compose for a person where both began with the same sight and at most one of
    them went on to later events; where there is a kernel, only as long as no other one went on (`Mates`). A stream moves with every
    record, and a series with every release where there is a kernel, so they share nobody.
Not covered: persons whom two publications call by different names (`reticent.encode.columns` says which are the same); publications of other stores; records without a person.
Cost: eight bytes a person and publication; a hash per record; one small query per commit.
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
    """First sights by person, with a mark on those who went on; of this publication, and of the others of its house.

    The veil of a person is a function of the key, the person and the value, so two publications that begin with the same sight show
    the same. Later events move the decoys by the same keyed steps in every publication: if two of them moved a person whose truths
    part, the candidate that differs would be the truth. And who is shown as in the beginning, when another publication has moved the
    decoys, is seen to have the first value still: what has moved is no truth.
    """

    def __init__(self, *, moving: bool) -> None:
        self._moving = moving
        self._own: dict[int, int] = {}
        self._others: dict[int, set[int]] = {}

    def load(self, shown: bytes, *, own: bool) -> None:
        """Takes up what a publication recorded."""
        persons, sights = np.frombuffer(shown, "<u8").reshape(2, -1).tolist()
        for person, sight in zip(persons, sights, strict=True):
            if own:
                self._own[person] = self._own.get(person, sight) | (sight & _HAS_LATER_EVENTS)
            else:
                self._others.setdefault(person, set()).add(sight)

    def count_conflicts(self, events: ShownEvents) -> int:
        """How many persons are shown otherwise than elsewhere, or move here as they do elsewhere."""
        return sum(
            any(not self._can_compose(sight, other) for other in self._others[person])
            for person, sight in self._current(events)
            if person in self._others
        )

    def encode_new(self, events: ShownEvents) -> bytes:
        """What is to be recorded: persons who are new, or moved for the first time; and remembers it.

        Nothing where they are to stand alone: persons without a recorded sight compose with no other publication.
        """
        if events.exclusive:
            return b""
        fresh = [(person, sight) for person, sight in self._current(events) if self._own.get(person) != sight]
        self._own.update(fresh)
        return np.array(list(zip(*fresh, strict=True)), dtype="<u8").tobytes() if fresh else b""

    def _current(self, events: ShownEvents) -> list[tuple[int, int]]:
        """The first sight of each person in this publication, marked where the person went on."""
        marks = (events.first_hashes & ~np.uint64(_HAS_LATER_EVENTS)) | events.has_later.astype(np.uint64)
        pairs = zip(events.persons.tolist(), marks.tolist(), strict=True)
        return [(person, self._own.get(person, mark) | (mark & _HAS_LATER_EVENTS)) for person, mark in pairs]

    def _can_compose(self, one: int, other: int) -> bool:
        """Whether this publication may show a person beside another."""
        first, went_on = (
            one & ~_HAS_LATER_EVENTS,
            other & (_HAS_LATER_EVENTS if self._moving else one & _HAS_LATER_EVENTS),
        )
        return first != 0 and first == other & ~_HAS_LATER_EVENTS and not went_on


_LOCK_TIMEOUT = 30.0
# Places for persons who are known to be recorded; one whom another has displaced is recorded once more, which harms nobody.
_CACHE_SIZE = 1 << 20
_CACHE_MASK = np.uint64(_CACHE_SIZE - 1)
_LAST_ID = sa.text(f"SELECT max(id) FROM {schema.population.name}")  # noqa: S608 - a name of our own
_ROWS_SINCE = select_rows(schema.population, "id > :seen ORDER BY id")
_EVERYBODY = np.uint64(2**64 - 1)
"""In the place of a person: a publication whose records the ledger does not see takes everybody."""


class Population:
    """The persons of one publication beside those of all others in its store."""

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
        # Linked tables are of no house: their persons compose with nothing.
        self._parameters_digest = publisher_class(kind, method).pin_digest(policy) if policy.tables is None else ""
        moving = bool(self._parameters_digest) and publisher_class(kind, method).has_kernel(policy)
        alone = kind == "stream" or (kind == "series" and moving)
        self._first_events = None if alone or not self._parameters_digest else FirstEvents(moving=moving)
        self._hasher = _core.stream.Hasher(store.population_key)
        self._recorded = np.zeros(_CACHE_SIZE, dtype=np.uint64)
        self._others: UInt64s = np.zeros(0, dtype=np.uint64)
        self._seen = 0
        self.shared = 0
        """Persons who stand in other publications too, where that was allowed."""
        self._load()

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What a release of these persons must say beside what its method says."""
        return (REPUBLICATION,) if self.shared else ()

    def hash_persons(self, persons: pa.ChunkedArray | pa.Array | None) -> UInt64s:
        """The persons of some records, in their order; nobody where the policy names no person."""
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
        """Warns of persons who may be others of this publication or of this store."""
        if self._kind != "table":  # a table tells by itself, with or without a store
            warn_of_variants(names)
        strangers = self._recorded[hashes & _CACHE_MASK] != hashes
        if self._seen and strangers.any():
            rows = self._store.query_rows(schema.population, _ROWS_SINCE, seen=0)
            known = np.concatenate([np.frombuffer(row["persons"], "<u8") for row in rows])
            strangers &= ~np.isin(hashes, known)
            if strangers.any():
                warn_of_new_variants(to_native(names).filter(pa.array(strangers)), self._hash_names, known)

    def hash_table_persons(self, table: pa.Table) -> UInt64s:
        """The persons of a table."""
        return self.hash_persons(None if self._policy.person is None else table.column(self._policy.person))

    def refuse_shared_persons(self, persons: UInt64s) -> None:
        """Refuses persons who stand in another publication.

        Raises:
            GuaranteeError: some do, and the publications do not compose.
        """
        if not len(self._others):
            return
        persons = np.unique(persons)
        self._refuse(self.count_elsewhere(persons), len(persons), "")

    def count_elsewhere(self, persons: UInt64s) -> int:
        """How many of some persons, each named once, stand in publications that do not compose with this one."""
        if len(self._others) and (self._others[-1] == _EVERYBODY or _EVERYBODY in persons):
            return len(persons)
        return int(np.isin(persons, self._others, assume_unique=True).sum()) if len(self._others) else 0

    def hash_everybody(self) -> UInt64s:
        """All persons, for a table whose policy names none: it stands alone in its store.

        Raises:
            GuaranteeError: others have published from this store.
        """
        if len(self._others) and not self._allow_republication:
            raise GuaranteeError(
                "The policy names no person, and other publications stand in this store: nobody can tell whether the same persons do; "
                "nothing was published.",
                hint="Two veils over one truth reveal it. Write person: and the identifier column, or give the table a store of its own, with "
                "none of its persons in another; --allow-republication publishes all the same, and the release says so.",
            )
        self.shared += len(self._others)
        return np.array([_EVERYBODY])

    def claim_everybody(self) -> None:
        """Takes all persons for this publication, for life: records on many machines are not shown to the ledger one by one.

        Raises:
            GuaranteeError: others have published from this store.
        """
        with self._store.lock(self._publisher, wait=_LOCK_TIMEOUT), self._store.transaction() as tx:
            self._load()
            if self._recorded[_EVERYBODY & _CACHE_MASK] != _EVERYBODY:
                if len(self._others) and not self._allow_republication:
                    raise GuaranteeError(
                        "Other publications stand in this store, and this one does not show its persons to the ledger.",
                        hint="Give it a store of its own, with none of the same persons in another; or --allow-republication.",
                    )
                self.shared = len(self._others)
                self.record(tx, np.array([_EVERYBODY]))

    def refuse_conflicts(self, events: ShownEvents | None) -> None:
        """Refuses persons of whom another publication of the house shows something else.

        Raises:
            GuaranteeError: two veils of one person would tell on each other.
        """
        if self._first_events is not None and events is not None:
            where = " under the same house, with another value or later events"
            self._refuse(self._first_events.count_conflicts(events), len(events.persons), where)

    def _refuse(self, shared: int, persons: int, where: str) -> None:
        if shared and not self._allow_republication:
            raise GuaranteeError(
                f"{shared:,} of {persons:,} persons stand in another publication of this store{where}; nothing was published.",
                hint="Two publications of the same persons can tell more than each alone. The veil composes while it shows the same; "
                "`reticent ledger` says who has seen what; --allow-republication publishes all the same, and the release says so.",
            )
        self.shared += shared

    def record(self, tx: Transaction, persons: UInt64s, events: ShownEvents | None = None) -> None:
        """Remembers persons within the transaction that publishes them; refuses those whom another publication took meanwhile."""
        new = _unique_persons(persons[self._recorded[persons & _CACHE_MASK] != persons])
        if (tx.value(_LAST_ID) or 0) != self._seen:
            self._load()
            self.refuse_shared_persons(new)
            self.refuse_conflicts(events)
        shown = b"" if self._first_events is None or events is None else self._first_events.encode_new(events)
        known = self._first_events is not None and events is not None and not events.exclusive
        if not shown and (known or not len(new)):  # a row without sights composes with nothing
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
        """Reads what was recorded since the last time."""
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
    """Each person once; sorting is quicker here than hashing what is hashed already."""
    ordered = np.sort(persons)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def summarize_publications(store: Store) -> dict[str, dict[str, object]]:
    """Who has seen what, in counts: per publication its persons, its method, its time, and how many stand elsewhere too."""
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
