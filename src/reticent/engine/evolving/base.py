"""Base class of the evolving engines: insert, delete and update records, and publish versions on demand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s, UInt64s
from reticent.encode.columns import normalize_names
from reticent.engine.base import Publisher, check_batch, sole_sensitive
from reticent.engine.evolving.change import Change, Op, is_feed, iter_segments
from reticent.engine.evolving.records import NO_CLASS, Records
from reticent.engine.rng import Rng
from reticent.engine.snapshot import pack, unpack
from reticent.engine.value_variants import merge_variants
from reticent.errors import DataError, GuaranteeError, InternalError, PolicyError
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import UNMET_REQUIREMENTS


class ChangeIds(NamedTuple):
    """The person and record ids in a change."""

    persons: list[str]
    records: list[str]


class EvolvingPublisher(Publisher):
    """A table under insertions, deletions and updates; `cut` publishes the current version."""

    kind = "evolving"
    can_republish: ClassVar[bool] = False

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self.sensitive, self.record_column = _roles(policy)
        self.l = policy.l_of(self.kind)
        self.records = Records(
            [*policy.quasi, *policy.plain, self.sensitive], sensitive=self.sensitive, memory_width=self._memory_width()
        )
        self.publications = 0
        self.step = 0

    # -- hooks of a method --------------------------------------------------------------------------------------

    def _memory_width(self) -> int:
        """Return the bytes per record of a method's memory of published candidates."""
        return 0

    def _prepare_insert(self, batch: pa.Table) -> Any:  # noqa: ARG002 - for overrides
        """Return what a method needs from a batch in addition to its codes, or refuse before anything changes."""
        return None

    def _prepare_update(self, rows: UInt32s, batch: pa.Table) -> Any:  # noqa: ARG002 - for overrides
        """Do the same as `_prepare_insert` for an update of rows."""
        return self._prepare_insert(batch)

    def _hash_persons(self, rows: UInt32s, notes: Any) -> None:  # noqa: ARG002 - for overrides
        """Store the keyed hashes of the persons of rows."""
        self.records.hash_persons(rows, self.rng.key("person"))

    @abstractmethod
    def _insert_rows(self, rows: UInt32s, notes: Any) -> tuple[UInt32s, Change]:
        """Assign classes to new rows; return the rows whose class changed, and the change."""

    @abstractmethod
    def _delete_rows(self, rows: UInt32s) -> tuple[UInt32s, Change]:
        """Remove rows from their classes, before their records are removed."""

    @abstractmethod
    def _update_rows(self, rows: UInt32s, codes: Int32s, notes: Any) -> tuple[UInt32s, Change]:
        """Give live rows new codes."""

    @abstractmethod
    def _publish(self, rows: UInt32s) -> Release:
        """Return the release of the rows that have a class."""

    def _reload(self, withheld: int) -> None:
        """Rebuild the private state of a method after a restart; `withheld` records have no class."""

    def ids_to_load(self, change: pa.Table) -> ChangeIds | None:  # noqa: ARG002 - for overrides
        """Return the ids whose records a change needs in memory; None for all records."""
        return None

    def keys_to_recall(self, change: pa.Table) -> list[str]:  # noqa: ARG002 - for overrides
        """Return the keys of the persons whose memories a change needs, if they exist."""
        return []

    def recall(self, memories: Mapping[str, bytes]) -> None:
        """Load the memories of some persons that `memories` returned."""

    def memories(self, persons: UInt64s | None = None) -> dict[str, bytes]:  # noqa: ARG002 - for overrides
        """Return the memories of some or all persons by key, also of persons without records."""
        return {}

    def ids_of(self, change: pa.Table) -> ChangeIds:
        """Return the person and record ids in a change."""
        columns = (self.policy.person, self.record_column)
        return ChangeIds(
            *(_read_ids(change.column(name).drop_null()) if name in change.column_names else [] for name in columns)
        )

    # -- changes ---------------------------------------------------------------------------------------------------

    def push(self, batch: pa.Table) -> list[Release]:
        """Add a batch: a change feed if it has a column `op`, else insertions; nothing is published."""
        (self.apply if is_feed(batch, self.policy) else self.insert)(batch)
        return []

    def insert(self, batch: pa.Table) -> Change:
        """Insert records."""
        batch = self._normalize_batch(batch)
        persons, names = self._identities(batch)
        self._refuse_known_records(names)
        notes = self._prepare_insert(batch)
        codes = self.records.encode(batch)
        rows = self.records.allocate(len(codes))
        self.records.put(rows, codes)
        self.records.bind(rows.tolist(), persons, names)
        self._hash_persons(rows, notes)
        self._next_step()
        moved, change = self._insert_rows(rows, notes)
        return replace(change, inserted=len(rows), withheld=self.counts.withheld, written=np.union1d(rows, moved))

    def delete(self, ids: pa.Array | pa.ChunkedArray | Sequence[Any], *, by: str | None = None) -> Change:
        """Delete records by the ids of persons (all their records) or of single records.

        The ids belong to the column `by`: by default the record column if the policy names one, else the person column.
        """
        rows = self._find(_read_ids(ids), by or self.record_column or str(self.policy.person))
        self._next_step()
        moved, change = self._delete_rows(rows)
        self.records.remove(rows.tolist())
        written = np.setdiff1d(moved, rows)
        change = replace(change, deleted=len(rows), removed_codes=(self.records.codes[rows],))
        return replace(change, withheld=self.counts.withheld, written=written, removed=np.sort(rows))

    def update(self, batch: pa.Table) -> Change:
        """Replace records: each row of the batch replaces the record with the same id."""
        batch = self._normalize_batch(batch)
        persons, names = self._identities(batch)
        rows = self._find(names or persons, self.record_column or str(self.policy.person), single=True)
        if names is not None and any(self.records.persons[r] != p for r, p in zip(rows.tolist(), persons, strict=True)):
            raise DataError(
                "An update assigns a record to another person; nothing was changed.",
                hint="Delete a record of the wrong person and insert a new one. Keep the old id of a person whose id "
                "changed: under two ids, two sets of candidates would share the true value.",
            )
        notes = self._prepare_update(rows, batch)
        codes = self.records.encode(batch)
        self._next_step()
        moved, change = self._update_rows(rows, codes, notes)
        return replace(change, updated=len(rows), withheld=self.counts.withheld, written=np.union1d(rows, moved))

    def apply(self, batch: pa.Table) -> Change:
        """Apply a change feed in order, completely or not at all (the whole feed is checked first)."""
        segments = list(iter_segments(batch))
        self._check_feed_ids(segments)
        change = Change(withheld=self.counts.withheld)
        for op, part in segments:
            if op == "delete":
                change = change.then(self.delete(part.column(self.record_column or self.policy.person)))
            else:
                change = change.then(self.insert(part) if op == "insert" else self.update(part))
        return change

    # -- publication -----------------------------------------------------------------------------------------------

    def cut(self, *, again: bool = False) -> list[Release]:
        """Publish the current table; `again` allows another publication by a method that is safe for one only."""
        if self.publications and not self.can_republish and not again:
            raise GuaranteeError(
                f"The method {self.method} is safe for one publication only, and {self.publications} were made; "
                "an attacker who compares two publications learns values of single persons.",
                hint="Use the method veil, or let the verifier decide about one more publication with --again.",
            )
        if self.records.not_loaded:
            raise InternalError("The table is only partly loaded and cannot be published.")
        self._next_step()
        rows = self.records.rows()
        rows = rows[self.records.classes[rows] != NO_CLASS]
        if not len(rows):
            raise GuaranteeError(
                f"No records can be published with l = {self.l}; nothing was published.",
                hint="Insert records; a method with groups needs records with more different sensitive values.",
            )
        release = self._publish(rows)
        self.publications, self._figures = self.publications + 1, dict(release.metrics)
        return [release]

    def close(self) -> list[Release]:
        """Publish the table if it was never published; later versions need `cut`."""
        return [] if self.publications or not len(self.records) else self.cut()

    @property
    def counts(self) -> RecordCounts:
        """Return the number of live, published and withheld records."""
        total = len(self.records)
        withheld = self._count_withheld_records()
        return RecordCounts(input=total, published=total - withheld, withheld=withheld)

    @abstractmethod
    def _count_withheld_records(self) -> int:
        """Return the number of records without a class."""

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of every publication."""
        privacy = self.policy.privacy
        unmet = () if privacy.k is None and privacy.t is None else (UNMET_REQUIREMENTS,)
        return replace(self._method_guarantee(), not_covered=(*self._method_guarantee().not_covered, *unmet))

    @abstractmethod
    def _method_guarantee(self) -> Guarantee:
        """Return the guarantee of the method."""

    def _to_release(
        self, tables: tuple[pa.Table, pa.Table], metrics: dict[str, float], explain: dict[str, Any]
    ) -> Release:
        qit, st = tables
        total = len(self.records)
        return Release(
            kind=self.kind,
            shape="anatomy",
            method=self.method,
            tables={"qit": qit, "st": st},
            guarantee=self.guarantee,
            records=RecordCounts(total, qit.num_rows, total - qit.num_rows),
            policy_hash=self.policy.hash,
            metrics=metrics,
            explain=explain | {"publication": self.publications + 1},
            seeded=self.rng.seeded,
        )

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _next_step(self) -> None:
        self.step += 1

    def _key(self, purpose: str) -> bytes:
        """Return a separate key for every purpose and step; a recomputed step gets the same key."""
        return self.rng.key(f"{purpose} {self.step}")

    def _identities(self, batch: pa.Table) -> tuple[list[str], list[str] | None]:
        persons = _read_ids(batch.column(self.policy.person))
        return persons, _read_ids(batch.column(self.record_column)) if self.record_column else None

    def _normalize_batch(self, batch: pa.Table) -> pa.Table:
        """Return the batch with the columns of the policy, and its values in the table's written form."""
        return merge_variants(check_batch(batch, self.policy), self.policy, self.records.words[self.sensitive])

    def _refuse_known_records(self, names: list[str] | None) -> None:
        if names is None:
            return
        known = sum(self.records.row_of_record(name) is not None for name in names) + len(names) - len(set(names))
        if known:
            raise DataError(
                f"{known:,} of {len(names):,} record ids are already in the table or repeated; nothing was changed.",
                hint="Use update for records that are in the table.",
            )

    def _find(self, ids: list[str], column: str, *, single: bool = False) -> UInt32s:
        if column == self.record_column:
            rows_of: list[tuple[int, ...]] = [
                () if (row := self.records.row_of_record(i)) is None else (row,) for i in ids
            ]
        elif column == self.policy.person:
            rows_of = [self.records.rows_of_person(i) for i in ids]
        else:
            raise PolicyError(
                f"'{column}' is neither the person nor the record column.", hint="Use the person or record column."
            )
        absent, twice = sum(not rows for rows in rows_of), len(ids) - len(set(ids))
        if absent or twice:
            wrong = [f"{absent:,} are not in the table"] * bool(absent) + [f"{twice:,} are repeated"] * bool(twice)
            raise DataError(
                f"Of {len(ids):,} ids {' and '.join(wrong)}; nothing was changed.",
                hint="Name each record once, and only records that are in the table.",
            )
        if single and any(len(rows) > 1 for rows in rows_of):
            raise DataError(
                "A person to update has several records; nothing was changed.",
                hint="Name the column of record ids in the policy: evolving: {record: ...}.",
            )
        return np.array([row for rows in rows_of for row in rows], dtype=np.uint32)

    def _check_feed_ids(self, segments: list[tuple[Op, pa.Table]]) -> None:
        """Check the feed against the ids of the table first, so that a feed that fails changes nothing."""
        column = self.record_column or str(self.policy.person)
        present: dict[str, int] = {}
        for op, part in segments:
            if op != "delete":
                self.records.encode(self._normalize_batch(part))
            elif column not in part.column_names:
                raise DataError(
                    f"The feed has no column '{column}'.", hint="Add the column: it identifies the records to delete."
                )
            for name in _read_ids(part.column(column)):
                known = present.get(name)
                if known is None:
                    known = (
                        len(self.records.rows_of_person(name))
                        if self.record_column is None
                        else int(self.records.row_of_record(name) is not None)
                    )
                if (
                    (op == "insert" and self.record_column and known)
                    or (op == "update" and known != 1)
                    or (op == "delete" and not known)
                ):
                    raise DataError(
                        f"The feed has an {op} that does not fit the table; nothing was changed.",
                        hint="Insert each record id once; update and delete only ids that are in the table.",
                    )
                present[name] = 0 if op == "delete" else known + (op == "insert")

    def snapshot(self) -> bytes:
        """Return the whole private state as bytes."""
        tables, shown = self.records.to_tables()
        people = self.memories()
        columns = {"key": pa.array(list(people), pa.string()), "memory": pa.array(list(people.values()), pa.binary())}
        return pack(self.policy, self.rng, self.extra_state(), tables | {"people": pa.table(columns)}, {"shown": shown})

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Restore a publisher from a snapshot."""
        rng, extra, tables, blobs = unpack(policy, state)
        publisher = cls(policy, rng=rng)
        publisher.records.from_tables(tables, blobs["shown"])
        keys, memories = tables["people"].columns
        publisher.recall(dict(zip(keys.to_pylist(), memories.to_pylist(), strict=True)))
        publisher.resume(extra)
        return publisher

    def extra_state(self) -> dict[str, Any]:
        """Return the state other than the records, as plain values."""
        return {
            "publications": self.publications,
            "step": self.step,
            "records": len(self.records),
            "withheld": self._count_withheld_records(),
            "metrics": self._figures,
        }

    def resume(self, extra: dict[str, Any]) -> None:
        """Load the state of `extra_state` after the records, or after the records that a change needs."""
        self.publications, self.step = int(extra["publications"]), int(extra["step"])
        self._figures = dict(extra["metrics"])
        self.records.not_loaded = int(extra["records"]) - len(self.records)
        self._reload(int(extra["withheld"]))


def _read_ids(column: pa.Array | pa.ChunkedArray | Sequence[Any]) -> list[str]:
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(column)
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    names = normalize_names(column.cast(pa.string()))
    if names.null_count:
        raise DataError(
            "An identifier is missing; nothing was changed.", hint="Fill in the person and record id of every row."
        )
    texts: list[str] = names.to_pylist()
    return texts


def _roles(policy: Policy) -> tuple[str, str | None]:
    sensitive = sole_sensitive(policy, "An evolving table needs")
    if policy.person is None:
        raise PolicyError(
            "An evolving table needs a person column.", hint="Write person: and the name of the identifier column."
        )
    record = policy.evolving.record
    if record is not None and (record not in policy.columns or policy.columns[record].role != "identifier"):
        raise PolicyError(
            "evolving.record must name a column with the role identifier.", hint="Correct the name or the role."
        )
    return sensitive, None if record == policy.person else record
