"""Base class of the table engines: collect batches, then publish the table once on `close`."""

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
from reticent.release.wording import REPEATED_PERSONS


class TablePublisher(Publisher):
    """Collects batches until `close`, which publishes the table once."""

    kind = "table"

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._batches: list[pa.Table] = []
        self._final_counts: RecordCounts | None = None
        self._guarantee = Guarantee({}, "any attacker, as long as nothing is published")
        self._source_rows: Int64s | None = None
        """Source row of each published row, where the method reports it."""
        self._cancellation = _core.table.CancellationToken()

    def use_cancellation(self, cancellation: _core.table.CancellationToken) -> None:
        """Set the token that ends the search early; a cancelled search publishes nothing."""
        self._cancellation = cancellation

    def encode(self, table: pa.Table) -> EncodedTable:
        """Encode a table for the searches and start the time and memory limits of the policy."""
        return replace(
            EncodedTable.from_table(self.policy, table), cancellation=apply_limits(self._cancellation, self.policy)
        )

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release; it claims nothing before `close`."""
        return self._guarantee

    @property
    def counts(self) -> RecordCounts:
        """Return the record counts; all rows are withheld until the release."""
        if self._final_counts is not None:
            return self._final_counts
        rows = sum(batch.num_rows for batch in self._batches)
        return RecordCounts(input=rows, withheld=rows)

    def push(self, batch: pa.Table) -> list[Release]:
        """Add a batch; nothing is published before `close`."""
        if self._final_counts is not None:
            raise DataError("The table is already published and accepts no more rows.", hint="Start a new release.")
        self._batches.append(check_batch(batch, self.policy))
        return []

    def close(self) -> list[Release]:
        """Publish the table, or raise an error and publish nothing."""
        if self._final_counts is not None:
            return []
        if not self._batches or not sum(batch.num_rows for batch in self._batches):
            raise DataError("The table has no rows.", hint="Use a file with a header and at least one row.")
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
        """Release the chosen records; the others count as suppressed, but not toward the suppression limit."""
        rows = chosen_records(table, self.policy)
        if rows is None:
            return self.release(table)
        release, suppressed = self.release(table.take(rows)), table.num_rows - len(rows)
        if self._source_rows is not None:
            self._source_rows = rows[self._source_rows]
        records = release.records + RecordCounts(suppressed, 0, 0, suppressed)
        return replace(release, records=records, explain={**release.explain, "suppressed_further_records": suppressed})

    @abstractmethod
    def release(self, table: pa.Table) -> Release:
        """Return the release of a whole table."""

    def snapshot(self) -> bytes:
        """Return the collected rows and the key as bytes."""
        done = None if self._final_counts is None else list(vars(self._final_counts).values())
        tables = {"pending": pa.concat_tables(self._batches, promote_options="permissive")} if self._batches else {}
        return pack(self.policy, self.rng, {"done": done}, tables)

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Restore a publisher with the rows it had collected."""
        rng, header, tables, _ = unpack(policy, state)
        publisher = cls(policy, rng=rng)
        publisher._batches = list(tables.values())
        publisher._final_counts = None if header["done"] is None else RecordCounts(*header["done"])
        return publisher


def add_persons_notice(release: Release, table: pa.Table, policy: Policy) -> Release:
    """Add a notice to the guarantee if the policy names no person and an identifier column repeats."""
    repeated = find_repeated_identifier(table, policy.identifiers) if policy.person is None else None
    if repeated is None:
        return release
    guarantee, notice = release.guarantee, persons_notice(*repeated, table.num_rows)
    return replace(release, guarantee=replace(guarantee, not_covered=(notice, *guarantee.not_covered)))


def persons_notice(name: str, further: int, rows: int) -> str:
    """Return the notice about an identifier that repeats although the policy does not name it as the person."""
    return (
        f"{REPEATED_PERSONS}: {further:,} of {rows:,} records repeat a value of the column '{name}', and "
        f"each is counted as a separate person; write person: {name} in the policy"
    )
