"""What all engines of a series share: the records of the next release are collected, one of each person, and published by `cut`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from reticent.engine.base import Publisher, check_batch
from reticent.engine.rng import Rng
from reticent.engine.snapshot import unpack
from reticent.engine.value_variants import merge_variants
from reticent.errors import CORRUPT_HINT, DataError, PolicyError, StateError
from reticent.policy import Policy
from reticent.release import RecordCounts, Release


class SeriesPublisher(Publisher):
    """Publishes the same persons again: `push` takes the table as it is now, `cut` publishes it as the next release."""

    kind = "series"

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        if policy.person is None:
            raise PolicyError("A series needs to know who is who.", hint="Write person: and the identifier column.")
        self._pending: list[pa.Table] = []
        self._counts = RecordCounts()

    @property
    def counts(self) -> RecordCounts:
        """Rows pushed and not yet cut count as held."""
        rows = sum(batch.num_rows for batch in self._pending)
        return self._counts + RecordCounts(input=rows, withheld=rows)

    def push(self, batch: pa.Table) -> list[Release]:
        """Takes in part of the table as it is now; nothing is published before `cut`."""
        self._pending.append(check_batch(batch, self.policy))
        return []

    def cut(self) -> list[Release]:
        """Publishes what was pushed as the next release, or raises and publishes nothing."""
        if not sum(batch.num_rows for batch in self._pending):
            raise DataError("There are no records to publish.", hint="Push the table as it is now, then cut.")
        table = merge_variants(self._collect().combine_chunks(), self.policy).combine_chunks()
        names = table.column(str(self.policy.person))
        if names.null_count or pc.count_distinct(names).as_py() < table.num_rows:
            raise DataError(
                f"Column '{self.policy.person}': every record of a release needs a person of its own.",
                hint="Keep one record per person and release, and fill missing identifiers.",
            )
        release = self._publish(table)
        self._pending, self._counts = [], self._counts + release.records
        return [release]

    def close(self) -> list[Release]:
        """Publishes what was pushed since the last cut, if anything."""
        return self.cut() if self._pending else []

    @abstractmethod
    def _publish(self, table: pa.Table) -> Release:
        """The next release."""

    def _collect(self) -> pa.Table:
        return pa.concat_tables(self._pending, promote_options="permissive")

    def _state(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """What a snapshot holds whatever the engine: counts, and what is pending."""
        tables = {"pending": self._collect()} if self._pending else {}
        return {"counts": list(vars(self._counts).values())}, tables

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on after the last release."""
        rng, saved, tables, blobs = unpack(policy, state)
        publisher = cls(policy, rng=rng)
        publisher._counts = RecordCounts(*saved["counts"])
        publisher._pending = [tables.pop("pending")] if "pending" in tables else []
        try:
            publisher._resume(saved, tables, blobs)
        except ValueError as error:
            raise StateError(f"The snapshot is damaged: {error}.", hint=CORRUPT_HINT) from None
        return publisher

    @abstractmethod
    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        """Takes what else a snapshot holds; a ValueError says that it is damaged."""
