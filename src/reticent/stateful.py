"""What a store keeps, for Python: a table that changes, and the same persons again and again."""

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

# Long enough for the changes of others before ours, short enough to notice one that hangs.
WAIT = 600.0
_SETTINGS_KEY = "about"


class EvolvingTable:
    """A table that gains, loses and corrects rows, on a store; everything is on disk when a call returns.

        table = EvolvingTable("private.db", "policy.yaml")
        table.insert("today.csv")
        table.publish("release-1")

    Each call stands alone and waits for other writers. For many calls in a row, `with table:` keeps the table in memory and
    the others waiting.
    """

    def __init__(self, store: Location, policy: Policy | Location | None = None, *, wait: float = WAIT) -> None:
        """Opens the table that a store holds; makes it under the policy, if one is given and there is none yet.

        Args:
            store: a path or a URL.
            policy: needed for a new table; a table keeps its policy for life.
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
            raise StateError("The table was begun under another policy.", hint="Leave the policy out to go on with it.")

    @classmethod
    def create(cls, store: Location, policy: Policy | Location, *, seed: int | None = None) -> Self:
        """Makes a store for an empty table under a policy; refuses one that holds a table already."""
        rules, name = policy_of(policy), evolving.Evolving.kind
        publisher(rules, name, rules.evolving.method, rng=Rng.fresh())  # refuses a policy that cannot work
        about = {"policy": rules.to_dict(), "base": str(rules.base.resolve()), "seed": seed}
        with Store.open(store) as opened:
            if name in opened.publishers():
                raise StateError(
                    "The store holds an evolving table already.",
                    hint="Go on with it. Another store is for other persons: these would be published anew.",
                )
            opened.register(name, policy_hash=rules.hash)
            with opened.lock(name, wait=WAIT), opened.transaction() as tx:
                tx.put(name, name, _SETTINGS_KEY, json.dumps(about).encode())
        return cls(store)

    @classmethod
    def open(cls, store: Location, *, wait: float = WAIT) -> Self:
        """Opens the table that a store holds."""
        return cls(store, wait=wait)

    def insert(self, data: Data, *, again: bool = True) -> Change:
        """Adds records; `again=False` refuses those that the last change has brought already."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.insert(batch, again=again)

    def update(self, data: Data) -> Change:
        """Replaces the records that the data name."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.update(batch)

    def apply(self, data: Data, *, again: bool = True) -> Change:
        """Applies a change feed: its column `op` says insert, update or delete."""
        batch = table_for_policy(data, self.policy)
        with self._acquire_driver() as driver:
            return driver.apply(batch, again=again)

    def delete(self, ids: Data | Sequence[Any], *, by: str | None = None) -> Change:
        """Removes records: a sequence of ids, or data with a column of them.

        Args:
            ids: of records where the policy names a column of record ids, otherwise of persons.
            by: the identifier column they belong to.
        """
        lines: list[str] = []
        if isinstance(ids, str | os.PathLike) or is_frame(ids):
            ids, by, lines = self._ids(table_for_policy(ids, self.policy), by)
        with self._acquire_driver() as driver:
            if lines:  # a file of ids alone has no header: who stands in its first line wants to be forgotten, too
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
        """Publishes the table as it is now, or hands over the publication that a crash kept from being delivered.

        Args:
            folder: a new folder for the release, if it is to be written.
            again: try although the method is made for one publication and one was made; the judge decides.
            format: csv or parquet.
            allow_republication: publish although some persons stand in other publications of the store; the release says so.

        Raises:
            GuaranteeError: the policy cannot be met, or some persons stand in another publication; nothing was published.
        """
        with self._acquire_driver() as driver:
            driver.allow_republication = allow_republication
            return driver.deliver(None if folder is None else Path(folder), format, again=again)

    def status(self) -> dict[str, Any]:
        """How the table stands, in plain values."""
        with self._acquire_driver() as driver:
            return driver.status()

    @property
    def engine(self) -> EvolvingPublisher:
        """The table in memory, inside `with`."""
        if self._driver is None:
            raise StateError("The table is not open.", hint="Write `with table:`.")
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
        """The ids, the column they belong to, and all lines of a file whose first is no name that we know."""
        known = [name for name in (by, self.policy.evolving.record, self.policy.person) if name is not None]
        column = next((name for name in known if name in batch.column_names), None)
        if column is None and by is None and batch.num_columns == 1:
            only = batch.column(0)
            lines = [*batch.column_names, *only.to_pylist()] if pa.types.is_string(only.type) else []
            return only, self.policy.person, lines
        if column is None:
            raise DataError(f"There is no column '{known[0]}'.", hint="Give the ids of persons or records.")
        return batch.column(column), column, []


class Series:
    """The same persons again and again, on a store that remembers what was seen of whom.

    releases = Series("private.db", "policy.yaml")
    releases.publish("spring.csv", "spring")
    """

    def __init__(
        self, store: Location, policy: Policy | Location, *, seed: int | None = None, allow_republication: bool = False
    ) -> None:
        """A series on a store; both are made with the first release.

        Args:
            store: a path or a URL.
            policy: the policy the series was begun under, or begins under.
            seed: makes a new series repeatable, for tests only.
            allow_republication: publish although some persons stand in other publications of the store; the releases say so.
        """
        self._allow_republication = allow_republication
        self._location, self.policy, self._seed = store, policy_of(policy), seed

    def publish(self, data: Data, folder: Location | None = None, *, format: str = "csv") -> Release:  # noqa: A002 - the users' word
        """Publishes all records as they are now as the next release.

        Args:
            data: a table with exactly the columns of the policy, or whatever names one on the command line.
            folder: a new folder for the release, if it is to be written.
            format: csv or parquet.

        Raises:
            GuaranteeError: the policy cannot be met; nothing was published and the store is unchanged.
        """
        records, name = table_for_policy(data, self.policy), series.Series.kind
        first = None if Store.exists(self._location) else self._first(records)  # refused: not even a store is made
        with Store.open(self._location) as store:
            secret = None if first is None else first.secret
            store.register(name, policy_hash=self.policy.hash, secret=secret)
            with store.lock(name):
                driver, place = series.Series(store, self.policy), None if folder is None else Path(folder)
                driver.allow_republication = self._allow_republication
                return driver.deliver(records, place, format, seed=self._seed, first=first)

    def status(self) -> dict[str, Any]:
        """How the series stands, in plain values."""
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
    """The policy a table was begun under, and its seed if it has one."""
    name = evolving.Evolving.kind
    if name not in store.publishers():
        raise StateError("The store holds no evolving table.", hint="Run `reticent evolve init` first.")
    about = json.loads(store.get(name, name, _SETTINGS_KEY) or b"{}")
    if not about:
        refuse_closed_publication(store, name)
        raise StateError(
            "The evolving table was not set up completely.",
            hint="Nothing was published from it: remove its store, and run `reticent evolve init` again.",
        )
    policy = Policy.from_dict(about["policy"], base=about["base"])
    if policy.hash != store.policy_hash(name):
        raise StateError(
            "A file that the policy names has changed since the table was begun.",
            hint="Restore it; a table keeps its policy for life.",
        )
    return policy, about["seed"]
