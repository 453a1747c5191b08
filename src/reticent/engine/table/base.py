"""What all releases of one table share: collect, then publish once on close."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Self

import pyarrow as pa

from reticent import _core
from reticent.arrays import Int64s
from reticent.engine.base import Original, Publisher, check_batch
from reticent.engine.identifiers import refuse_pseudonym_repeats
from reticent.engine.rng import Rng
from reticent.engine.snapshot import pack, unpack
from reticent.engine.table.encoded_table import EncodedTable, apply_limits
from reticent.engine.table.people import chosen_records
from reticent.engine.value_variants import merge_variants
from reticent.errors import DataError, WorkCancelledError
from reticent.policy import Policy
from reticent.policy.column_patterns import find_repeated_identifier
from reticent.release import Guarantee, RecordCounts, Release


class TablePublisher(Publisher):
    """Holds every batch until `close`, which publishes the table once."""

    kind = "table"

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._batches: list[pa.Table] = []
        self._final_counts: RecordCounts | None = None
        self._guarantee = Guarantee({}, "anybody, as long as nothing is published")
        self._source_rows: Int64s | None = None
        """The row of the table that each published row was made from, where a method tells."""
        self._cancellation = _core.table.CancellationToken()

    def use_cancellation(self, cancellation: _core.table.CancellationToken) -> None:
        """Ends the search early when the watch is cancelled; nothing is published then."""
        self._cancellation = cancellation

    def encode(self, table: pa.Table) -> EncodedTable:
        """A table as the searches see it, and what they may use from now on."""
        return replace(
            EncodedTable.from_table(self.policy, table), cancellation=apply_limits(self._cancellation, self.policy)
        )

    @property
    def guarantee(self) -> Guarantee:
        """That of the release; nothing is claimed before it."""
        return self._guarantee

    @property
    def counts(self) -> RecordCounts:
        """All rows are held until the release."""
        if self._final_counts is not None:
            return self._final_counts
        rows = sum(batch.num_rows for batch in self._batches)
        return RecordCounts(input=rows, withheld=rows)

    def push(self, batch: pa.Table) -> list[Release]:
        """Takes a batch in; nothing is published before `close`."""
        if self._final_counts is not None:
            raise DataError("The table has been published; it takes no more rows.", hint="Start a new release.")
        self._batches.append(check_batch(batch, self.policy))
        return []

    def close(self) -> list[Release]:
        """Publishes the table, or raises and publishes nothing."""
        if self._final_counts is not None:
            return []
        if not self._batches or not sum(batch.num_rows for batch in self._batches):
            raise DataError("The table has no rows.", hint="Give a file with a header and at least one row.")
        table = pa.concat_tables(self._batches, promote_options="permissive")
        refuse_pseudonym_repeats(table, self.policy)
        table = merge_variants(table, self.policy)
        release = add_persons_notice(self._release(table), table, self.policy)
        if self._cancellation.cancelled:
            raise WorkCancelledError("The search was cancelled; nothing was published.")
        self._original = None if self._source_rows is None else Original(table, self._source_rows)
        self._final_counts, self._batches = release.records, []
        self._guarantee, self._figures = release.guarantee, dict(release.metrics)
        return [release]

    def _release(self, table: pa.Table) -> Release:
        """The release of the records that count; the others are suppressed, but not held against the limit."""
        rows = chosen_records(table, self.policy)
        if rows is None:
            return self.release(table)
        release, left_out = self.release(table.take(rows)), table.num_rows - len(rows)
        if self._source_rows is not None:
            self._source_rows = rows[self._source_rows]
        counts = release.records + RecordCounts(left_out, 0, 0, left_out)
        return replace(release, records=counts, explain={**release.explain, "suppressed_further_records": left_out})

    @abstractmethod
    def release(self, table: pa.Table) -> Release:
        """The release of a whole table."""

    def snapshot(self) -> bytes:
        """The held rows and the key."""
        done = None if self._final_counts is None else list(vars(self._final_counts).values())
        tables = {"pending": pa.concat_tables(self._batches, promote_options="permissive")} if self._batches else {}
        return pack(self.policy, self.rng, {"done": done}, tables)

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on with the held rows."""
        rng, header, tables, _ = unpack(policy, state)
        publisher = cls(policy, rng=rng)
        publisher._batches = list(tables.values())
        publisher._final_counts = None if header["done"] is None else RecordCounts(*header["done"])
        return publisher


def add_persons_notice(release: Release, table: pa.Table, policy: Policy) -> Release:
    """The release with a loud word on persons that the policy does not name, where a column shows that they repeat."""
    again = find_repeated_identifier(table, policy.identifiers) if policy.person is None else None
    if again is None:
        return release
    guarantee, word = release.guarantee, persons_notice(*again, table.num_rows)
    return replace(release, guarantee=replace(guarantee, not_covered=(word, *guarantee.not_covered)))


def persons_notice(name: str, further: int, rows: int) -> str:
    """What a release says where an identifier repeats and the policy does not name it."""
    return (
        f"PERSONS WITH SEVERAL RECORDS: {further:,} of {rows:,} records repeat the column '{name}' and are counted as "
        f"persons of their own; write person: {name} in the policy"
    )
