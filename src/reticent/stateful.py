"""The Python API of publications with a store: evolving tables and series."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from reticent.api import policy_of, table_for_policy
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import DataError, StateError
from reticent.frames import is_frame
from reticent.policy import Policy
from reticent.publication import evolving, series
from reticent.store import Store
from reticent.store.transaction import refuse_closed_publication

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reticent.api import Data, Location
    from reticent.engine.evolving.base import EvolvingPublisher
    from reticent.engine.evolving.change import Change
    from reticent.release import Release

# Long enough for the changes of other writers, short enough to notice one that hangs.
WAIT = 600.0
_SETTINGS_KEY = "about"


class EvolvingTable:
    """A table with insertions, deletions and corrections, in a store. Every change is on disk when a call returns.

        table = EvolvingTable("private.db", "policy.yaml")
        table.insert("today.csv")
        table.publish("release-1")

    Each call opens the store and waits for other writers. For many calls in a row, `with table:` keeps the table in memory
    and makes other writers wait.
    """

    def __init__(self, store: Location, policy: Policy | Location | None = None, *, wait: float = WAIT) -> None:
        """Open the table in a store, or create it if a policy is given and the store has no table.

        Args:
            store: a path or a URL.
            policy: required for a new table; it cannot be changed later.
            wait: seconds to wait for other writers.
        """
        self._location, self._wait = store, wait
        self._driver: evolving.Evolving | None = None
        self._exit = contextlib.ExitStack()
        if policy is not None and not _has_table(store):
            self.create(store, policy)
        with Store.open(store, create=False) as opened:
            self.policy, self._seed = _load_settings(opened)
        if policy is not None and policy_of(policy).hash != self.policy.hash:
            raise StateError(
                "The table was created with another policy.", hint="Omit the policy to use the table's own."
            )

    @classmethod
    def create(cls, store: Location, policy: Policy | Location, *, seed: int | None = None) -> Self:
        """Create an empty table under a policy. Refuse a store that already has a table."""
        rules, name = policy_of(policy), evolving.Evolving.kind
        publisher(rules, name, rules.evolving.method, rng=Rng.fresh())  # refuses a policy that cannot work
        about = {"policy": rules.to_dict(), "base": str(rules.base.resolve()), "seed": seed}
        with Store.open(store) as opened:
            if name in opened.publishers():
                raise StateError(
                    "The store already has an evolving table.",
                    hint="Use this table. Do not use a new store for the same people: they would be published a second time.",
                )
            opened.register(name, policy_hash=rules.hash)
            with opened.lock(name, wait=WAIT), opened.transaction() as tx:
                tx.put(name, name, _SETTINGS_KEY, json.dumps(about).encode())
        return cls(store)

    @classmethod
    def open(cls, store: Location, *, wait: float = WAIT) -> Self:
        """Open the table in a store."""
        return cls(store, wait=wait)

    def insert(self, data: Data, *, again: bool = True) -> Change:
        """Add records. `again=False` refuses data that is identical to the last change."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.insert(batch, again=again)

    def update(self, data: Data) -> Change:
        """Replace the records that the data names."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.update(batch)

    def apply(self, data: Data, *, again: bool = True) -> Change:
        """Apply a change feed. Its column `op` says insert, update or delete."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.apply(batch, again=again)

    def delete(self, ids: Data | Sequence[Any], *, by: str | None = None) -> Change:
        """Delete records by a sequence of ids, or by data with a column of ids.

        Args:
            ids: ids of records if the policy names a column of record ids, otherwise of persons.
            by: the identifier column of the ids.
        """
        lines: list[str] = []
        if isinstance(ids, str | os.PathLike) or is_frame(ids):
            ids, by, lines = self._ids(table_for_policy(ids, self.policy), by)
        with self._acquire_driver() as driver:
            if lines:  # a file of ids may have no header: then its first line is an id, too
                with contextlib.suppress(DataError):
                    return driver.delete(lines, by=by)
            return driver.delete(ids, by=by)

    def publish(
        self,
        folder: Location | None = None,
        *,
        again: bool = False,
        format: str = "csv",  # noqa: A002 - the users' word
        allow_republication: bool = False,
    ) -> Release:
        """Publish the table as it is now, or deliver the publication that a crash left undelivered.

        Args:
            folder: a new folder for the release; None writes no folder.
            again: try another publication with a method made for one; the verifier decides.
            format: csv or parquet.
            allow_republication: allow people who were already released from this store; the release records this.

        Raises:
            GuaranteeError: the policy cannot be met, or some persons are in another publication; nothing was published.
        """
        with self._acquire_driver() as driver:
            driver.allow_republication = allow_republication
            return driver.deliver(None if folder is None else Path(folder), format, again=again)

    def status(self) -> dict[str, Any]:
        """Return the state of the table in counts."""
        with self._acquire_driver() as driver:
            return driver.status()

    @property
    def engine(self) -> EvolvingPublisher:
        """The engine with the table in memory, inside `with`."""
        if self._driver is None:
            raise StateError("The table is not open.", hint="Use it inside `with table:`.")
        return self._driver.engine

    def __enter__(self) -> Self:
        self._driver = self._exit.enter_context(self._open_driver(whole=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._driver = None
        self._exit.close()

    def __repr__(self) -> str:
        return f"EvolvingTable({self.policy.evolving.method}, l = {self.policy.l_of('evolving')})"

    def _acquire_driver(self) -> contextlib.AbstractContextManager[evolving.Evolving]:
        return self._open_driver(whole=False) if self._driver is None else contextlib.nullcontext(self._driver)

    @contextlib.contextmanager
    def _open_driver(self, *, whole: bool) -> Iterator[evolving.Evolving]:
        name = evolving.Evolving.kind
        rng = None if self._seed is None else Rng.from_seed(self._seed)
        with Store.open(self._location, create=False) as store, store.lock(name, wait=self._wait):
            yield evolving.Evolving(store, self.policy, rng=rng, in_memory=whole)

    def _ids(self, batch: pa.Table, by: str | None) -> tuple[pa.ChunkedArray, str | None, list[str]]:
        """Return the ids, their column, and all lines of a file whose first line is no known column name."""
        known = [name for name in (by, self.policy.evolving.record, self.policy.person) if name is not None]
        column = next((name for name in known if name in batch.column_names), None)
        if column is None and by is None and batch.num_columns == 1:
            only = batch.column(0)
            lines = [*batch.column_names, *only.to_pylist()] if pa.types.is_string(only.type) else []
            return only, self.policy.person, lines
        if column is None:
            raise DataError(
                f"There is no column '{known[0]}'.", hint="Give a column with the ids of persons or records."
            )
        return batch.column(column), column, []


class Series:
    """A series: releases of the same persons, with a store that records what was published of each person.

    releases = Series("private.db", "policy.yaml")
    releases.publish("spring.csv", "spring")
    """

    def __init__(
        self, store: Location, policy: Policy | Location, *, seed: int | None = None, allow_republication: bool = False
    ) -> None:
        """Open a series. The first release creates the store and the series.

        Args:
            store: a path or a URL.
            policy: the policy of the series; it cannot be changed later.
            seed: makes a new series repeatable, for tests only.
            allow_republication: allow people who were already released from this store; the releases record this.
        """
        self._allow_republication = allow_republication
        self._location, self.policy, self._seed = store, policy_of(policy), seed

    def publish(self, data: Data, folder: Location | None = None, *, format: str = "csv") -> Release:  # noqa: A002 - the users' word
        """Publish all current records as the next release.

        Args:
            data: a table with exactly the columns of the policy, or its path or URL.
            folder: a new folder for the release; None writes no folder.
            format: csv or parquet.

        Raises:
            GuaranteeError: the policy cannot be met; nothing was published and the store is unchanged.
        """
        records, name = table_for_policy(data, self.policy), series.Series.kind
        first = (
            None if Store.exists(self._location) else self._first(records)
        )  # before a store exists: it may be refused
        with Store.open(self._location) as store:
            secret = None if first is None else first.secret
            store.register(name, policy_hash=self.policy.hash, secret=secret)
            with store.lock(name):
                driver, place = series.Series(store, self.policy), None if folder is None else Path(folder)
                driver.allow_republication = self._allow_republication
                return driver.deliver(records, place, format, seed=self._seed, first=first)

    def status(self) -> dict[str, Any]:
        """Return the state of the series in counts."""
        name = series.Series.kind
        with Store.open(self._location, create=False) as store:
            releases = len(store.ledger(name))
        settings = self.policy.series
        return {"method": settings.method, "m": self.policy.m, "max_risk": settings.limit, "releases": releases}

    def _first(self, records: pa.Table) -> series.NextRelease:
        rng = Rng.fresh() if self._seed is None else Rng.from_seed(self._seed)
        return series.compose(records, self.policy, rng)

    def __repr__(self) -> str:
        return f"Series({self.policy.series.method}, m = {self.policy.m})"


def _has_table(store: Location) -> bool:
    if not Store.exists(store):
        return False
    with Store.open(store, create=False) as opened:
        return evolving.Evolving.kind in opened.publishers()


def _load_settings(store: Store) -> tuple[Policy, int | None]:
    """Return the policy of the table and its seed, if it has one."""
    name = evolving.Evolving.kind
    if name not in store.publishers():
        raise StateError("The store has no evolving table.", hint="Run `reticent evolve init` first.")
    about = json.loads(store.get(name, name, _SETTINGS_KEY) or b"{}")
    if not about:
        refuse_closed_publication(store, name)
        raise StateError(
            "The evolving table was not created completely. Nothing was published from it.",
            hint="Remove its store, and run `reticent evolve init` again.",
        )
    policy = Policy.from_dict(about["policy"], base=about["base"])
    if policy.hash != store.policy_hash(name):
        raise StateError(
            "A file that the policy names has changed since the table was created.",
            hint="Restore the file: the policy of a table cannot be changed.",
        )
    return policy, about["seed"]
