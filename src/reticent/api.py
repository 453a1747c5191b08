"""The front door in Python: the verbs of the command line, an Arrow table or a path in, a release out."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from reticent.audit import verify as judge
from reticent.audit.persons import Input
from reticent.audit.published import is_wire, text_table
from reticent.audit.risk.singling_out import singling_out
from reticent.connectors.inputs import read_input
from reticent.connectors.linked import read_tables
from reticent.engine import publisher
from reticent.engine.identifiers import prepare
from reticent.engine.rng import Rng
from reticent.errors import DataError, PolicyError, StateError
from reticent.frames import is_frame, table_of
from reticent.policy import Policy
from reticent.policy.guess import guess, guess_person
from reticent.policy.missing import without_markers
from reticent.policy.section import unknown
from reticent.publication import evolving, linked, series, single, table
from reticent.release import Release
from reticent.store import Store
from reticent.store.restored import refuse_closed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reticent._core.table import Watch
    from reticent.audit import Verdict
    from reticent.audit.risk.singling_out import SinglingOut
    from reticent.engine.evolving.base import EvolvingPublisher
    from reticent.engine.evolving.change import Change
    from reticent.publication.draft import Draft
    from reticent.release import Ledger
    from reticent.report import Audit

Place: TypeAlias = str | os.PathLike[str]
Data: TypeAlias = Place | Any
"""Whatever names a table on the command line, an Arrow table, or a frame of another library; these have no common type."""
Published: TypeAlias = Data | Release
# Long enough for the changes of others before ours, short enough to notice one that hangs.
WAIT = 600.0
_ABOUT = "about"


def anonymize(
    data: Data,
    policy: Policy | Place,
    *,
    method: str | None = None,
    store: Place | None = None,
    seed: int | None = None,
    despite_ledger: bool = False,
    watch: Watch | None = None,
) -> Release:
    """Releases one table, once.

    Args:
        data: a table with exactly the columns of the policy, or whatever names one on the command line; under a policy with
            `tables` all of them by name, or whatever names them.
        policy: a policy, or the path of its file.
        method: instead of the policy's `table.method`.
        store: remembers who stood in which publication, and keeps the key of the veil, which cannot do without.
        seed: makes the release repeatable, for tests only.
        despite_ledger: publish although some persons stand in other publications of the store; the release says so.
        watch: tells how far the search is, and may be cancelled from another thread.

    Raises:
        GuaranteeError: the policy cannot be met.
        UnwantedError: the watch was cancelled.
    """
    rules = _policy(policy)
    if rules.tables is not None:
        if method is not None:
            raise PolicyError("Linked tables have one method.", hint="Leave out --method.")
        return _linked(data, rules, store, seed, despite=despite_ledger)
    records = _table(data, rules)
    if store is None:
        return table.publish(records, rules, method=method, seed=seed, watch=watch).release
    with Store.open(store) as opened:
        return single.publish(records, rules, opened, method=method, seed=seed, despite=despite_ledger, watch=watch)


def draft(data: Data, policy: Policy | Place, *, method: str | None = None, seed: int | None = None) -> Draft:
    """A release that nobody sees, with what each column lost and what would help; no store and no ledger knows of it.

    Args:
        data: a table with exactly the columns of the policy, or whatever names one on the command line.
        policy: a policy, or the path of its file.
        method: instead of the policy's `table.method`.
        seed: makes it repeatable.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    from reticent.publication.draft import make

    rules = _policy(policy)
    return make(_table(data, rules), rules, method=method, seed=seed)


def verify(
    releases: Published | Sequence[Published],
    policy: Policy | Place,
    *,
    store: Place | None = None,
    original: Data | None = None,
) -> Verdict:
    """Recomputes every claim from the releases alone; with the original also what they cannot show.

    Args:
        releases: folders, files of JSON lines, `Release` values or anybody's tables; several in the order of publication.
        policy: a policy, or the path of its file.
        store: the store of the publication, whose ledger tells who stood in which group.
        original: the private input of a table's release: shows whether the claims of persons hold.
    """
    rules = _policy(policy)
    if rules.tables is not None and original is not None:
        raise PolicyError(
            "Linked tables are compared with their input when they are released, not later.",
            hint="Leave --original out; `reticent audit --original` joins the tables before and after.",
        )
    source = None if original is None else Input(prepare(_table(original, rules), rules))
    ledger = None if store is None else ledger_of(store)
    sources = sources_of(releases, rules)
    if not sources:
        raise PolicyError("There is no release to verify.", hint="Give a folder, a file, a release or a table.")
    return judge(sources, rules, ledger=ledger, original=source)


def audit(
    releases: Published | Sequence[Published],
    policy: Policy | Place,
    *,
    original: Data | None = None,
    store: Place | None = None,
    seed: int | None = None,
) -> Audit:
    """Verifies, measures and attacks releases.

    Args:
        releases: folders, files of JSON lines, `Release` values or anybody's tables; several in the order of publication.
        policy: a policy, or the path of its file.
        original: the private input, to count right guesses and the utility.
        store: the store of the publication, whose ledger tells who stood in which group.
        seed: makes the attacks repeatable.
    """
    from reticent.report import Material
    from reticent.report import audit as attack

    rules = _policy(policy)
    ledger = None if store is None else ledger_of(store)
    if rules.tables is not None and original is not None:
        material = Material(tables=_tables(original, rules)[0], ledger=ledger, seed=seed)
    else:
        material = Material(original=None if original is None else _table(original, rules), ledger=ledger, seed=seed)
    return attack(sources_of(releases, rules), rules, material)


def risk(
    data: Data,
    *,
    quasi: Sequence[str] | str | None = None,
    sensitive: Sequence[str] | str | None = None,
    person: str | None = None,
) -> SinglingOut:
    """Says who could be singled out in a table as it is, before any policy exists.

    Args:
        data: a table, or whatever names one on the command line.
        quasi: the columns that others may know; guessed from names and values otherwise.
        sensitive: what nobody should learn; guessed otherwise.
        person: the column that names the same person across records; guessed otherwise.
    """
    records = _whole(data)
    guesses = guess(records)
    quasi, sensitive = ([names] if isinstance(names, str) else names for names in (quasi, sensitive))
    named = [*(quasi or ()), *(sensitive or ()), *([person] if person else ())]
    for name in named:
        if name not in records.column_names:
            raise PolicyError(f"The data has no such column: {unknown(name, tuple(records.column_names))}")
    person = person or guess_person(guesses)
    roles = {one.column: one.role for one in guesses} | dict.fromkeys(sensitive or (), "sensitive")
    known = quasi or [name for name, role in roles.items() if role == "quasi" and name != person]
    private = sensitive or [name for name, role in roles.items() if role == "sensitive" and name not in known]
    return singling_out(text_table(records), known, sensitive=private, person=person)


def ledger_of(store: Place) -> Ledger:
    """The ledger of a store that holds one publication."""
    with Store.open(store, create=False) as opened:
        names = opened.publishers()
        names = tuple(name for name in names if len(names) == 1 or opened.row(name)["entries"])
        if len(names) != 1:
            raise StateError(
                f"The store holds {len(names)} publications.",
                hint="Give the store of one evolving table, series or stream.",
            )
        return opened.ledger(names[0])


class EvolvingTable:
    """A table that gains, loses and corrects rows, on a store; everything is on disk when a call returns.

        table = EvolvingTable("private.db", "policy.yaml")
        table.insert("today.csv")
        table.publish("release-1")

    Each call stands alone and waits for other writers. For many calls in a row, `with table:` keeps the table in memory and
    the others waiting.
    """

    def __init__(self, store: Place, policy: Policy | Place | None = None, *, wait: float = WAIT) -> None:
        """Opens the table that a store holds; makes it under the policy, if one is given and there is none yet.

        Args:
            store: a path or a URL.
            policy: needed for a new table; a table keeps its policy for life.
            wait: seconds to wait for other writers.
        """
        self._place, self._wait = store, wait
        self._driver: evolving.Evolving | None = None
        self._exit = contextlib.ExitStack()
        if policy is not None and not _holds(store):
            self.create(store, policy)
        with Store.open(store, create=False) as opened:
            self.policy, self._seed = _about(opened)
        if policy is not None and _policy(policy).hash != self.policy.hash:
            raise StateError("The table was begun under another policy.", hint="Leave the policy out to go on with it.")

    @classmethod
    def create(cls, store: Place, policy: Policy | Place, *, seed: int | None = None) -> Self:
        """Makes a store for an empty table under a policy; refuses one that holds a table already."""
        rules, name = _policy(policy), evolving.Evolving.kind
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
                tx.put(name, name, _ABOUT, json.dumps(about).encode())
        return cls(store)

    @classmethod
    def open(cls, store: Place, *, wait: float = WAIT) -> Self:
        """Opens the table that a store holds."""
        return cls(store, wait=wait)

    def insert(self, data: Data, *, again: bool = True) -> Change:
        """Adds records; `again=False` refuses those that the last change has brought already."""
        batch = _table(data, self.policy)
        with self._turn() as driver:
            return driver.insert(batch, again=again)

    def update(self, data: Data) -> Change:
        """Replaces the records that the data name."""
        batch = _table(data, self.policy)
        with self._turn() as driver:
            return driver.update(batch)

    def apply(self, data: Data, *, again: bool = True) -> Change:
        """Applies a change feed: its column `op` says insert, update or delete."""
        batch = _table(data, self.policy)
        with self._turn() as driver:
            return driver.apply(batch, again=again)

    def delete(self, ids: Data | Sequence[Any], *, by: str | None = None) -> Change:
        """Removes records: a sequence of ids, or data with a column of them.

        Args:
            ids: of records where the policy names a column of record ids, otherwise of persons.
            by: the identifier column they belong to.
        """
        if isinstance(ids, str | os.PathLike) or is_frame(ids):
            ids, by = self._ids(_table(ids, self.policy), by)
        with self._turn() as driver:
            return driver.delete(ids, by=by)

    def publish(
        self,
        folder: Place | None = None,
        *,
        again: bool = False,
        format: str = "csv",  # noqa: A002 - the users' word
        despite_ledger: bool = False,
    ) -> Release:
        """Publishes the table as it is now, or hands over the publication that a crash kept from being delivered.

        Args:
            folder: a new folder for the release, if it is to be written.
            again: try although the method is made for one publication and one was made; the judge decides.
            format: csv or parquet.
            despite_ledger: publish although some persons stand in other publications of the store; the release says so.

        Raises:
            GuaranteeError: the policy cannot be met, or some persons stand in another publication; nothing was published.
        """
        with self._turn() as driver:
            driver.despite = despite_ledger
            return driver.deliver(None if folder is None else Path(folder), again=again, form=format)

    def status(self) -> dict[str, Any]:
        """How the table stands, in plain values."""
        with self._turn() as driver:
            return driver.status()

    @property
    def engine(self) -> EvolvingPublisher:
        """The table in memory, inside `with`."""
        if self._driver is None:
            raise StateError("The table is not open.", hint="Write `with table:`.")
        return self._driver.engine

    def __enter__(self) -> Self:
        self._driver = self._exit.enter_context(self._opened(whole=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._driver = None
        self._exit.close()

    def __repr__(self) -> str:
        return f"EvolvingTable({self.policy.evolving.method}, l = {self.policy.l_of('evolving')})"

    def _turn(self) -> contextlib.AbstractContextManager[evolving.Evolving]:
        return self._opened(whole=False) if self._driver is None else contextlib.nullcontext(self._driver)

    @contextlib.contextmanager
    def _opened(self, *, whole: bool) -> Iterator[evolving.Evolving]:
        name = evolving.Evolving.kind
        rng = None if self._seed is None else Rng.from_seed(self._seed)
        with Store.open(self._place, create=False) as store, store.lock(name, wait=self._wait):
            yield evolving.Evolving(store, self.policy, rng=rng, whole=whole)

    def _ids(self, batch: pa.Table, by: str | None) -> tuple[pa.ChunkedArray, str | None]:
        known = [name for name in (by, self.policy.evolving.record, self.policy.person) if name is not None]
        column = next((name for name in known if name in batch.column_names), None)
        if column is None and by is None and batch.num_columns == 1:
            return batch.column(0), self.policy.person
        if column is None:
            raise DataError(f"There is no column '{known[0]}'.", hint="Give the ids of persons or records.")
        return batch.column(column), column


class Series:
    """The same persons again and again, on a store that remembers what was seen of whom.

    releases = Series("private.db", "policy.yaml")
    releases.publish("spring.csv", "spring")
    """

    def __init__(
        self, store: Place, policy: Policy | Place, *, seed: int | None = None, despite_ledger: bool = False
    ) -> None:
        """A series on a store; both are made with the first release.

        Args:
            store: a path or a URL.
            policy: the policy the series was begun under, or begins under.
            seed: makes a new series repeatable, for tests only.
            despite_ledger: publish although some persons stand in other publications of the store; the releases say so.
        """
        self._despite = despite_ledger
        self._place, self.policy, self._seed = store, _policy(policy), seed

    def publish(self, data: Data, folder: Place | None = None, *, format: str = "csv") -> Release:  # noqa: A002 - the users' word
        """Publishes all records as they are now as the next release.

        Args:
            data: a table with exactly the columns of the policy, or whatever names one on the command line.
            folder: a new folder for the release, if it is to be written.
            format: csv or parquet.

        Raises:
            GuaranteeError: the policy cannot be met; nothing was published and the store is unchanged.
        """
        records, name = _table(data, self.policy), series.Series.kind
        first = None if Store.exists(self._place) else self._first(records)  # refused: not even a store is made
        with Store.open(self._place) as store:
            secret = None if first is None else first.secret
            store.register(name, policy_hash=self.policy.hash, secret=secret)
            with store.lock(name):
                driver, place = series.Series(store, self.policy), None if folder is None else Path(folder)
                driver.despite = self._despite
                return driver.deliver(records, place, seed=self._seed, first=first, form=format)

    def status(self) -> dict[str, Any]:
        """How the series stands, in plain values."""
        name = series.Series.kind
        with Store.open(self._place, create=False) as store:
            releases = len(store.ledger(name))
        settings = self.policy.series
        return {"method": settings.method, "m": self.policy.m, "max_risk": settings.limit, "releases": releases}

    def _first(self, records: pa.Table) -> series.Next:
        rng = Rng.fresh() if self._seed is None else Rng.from_seed(self._seed)
        return series.compose(records, self.policy, rng)

    def __repr__(self) -> str:
        return f"Series({self.policy.series.method}, m = {self.policy.m})"


def _policy(policy: Policy | Place) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | os.PathLike):
        raise PolicyError(
            f"The policy is of the type {type(policy).__name__}.",
            hint="Give reticent.Policy(columns=..., privacy=...), or the path of a policy file.",
        )
    return Policy.load(Path(policy))


def sources_of(releases: Published | Sequence[Published], policy: Policy) -> list[Path | Release | pa.Table]:
    """What was released by us stays where it is; a file of anybody is read as the table it holds."""
    return [_source(source, policy) for source in (releases if isinstance(releases, list | tuple) else [releases])]


def _source(release: Published, policy: Policy) -> Path | Release | pa.Table:
    if isinstance(release, Release):
        return release
    if isinstance(release, str | os.PathLike) and ((path := Path(release)).is_dir() or is_wire(path)):
        return path
    return _whole(release, policy)


def _linked(data: Any, policy: Policy, store: Place | None, seed: int | None, *, despite: bool) -> Release:
    tables, standard = _tables(data, policy)
    if store is None:
        return linked.publish(tables, policy, seed=seed, standard=standard).release
    with Store.open(store) as opened:
        return single.publish_linked(tables, policy, opened, seed=seed, despite=despite, standard=standard)


def _tables(data: Any, policy: Policy) -> tuple[Mapping[str, pa.Table], dict[str, Any] | None]:
    if isinstance(data, Mapping):
        return {name: _whole(part, policy) for name, part in data.items()}, None
    return read_tables(os.fspath(data), policy)


def _table(data: Data, policy: Policy) -> pa.Table:
    if policy.tables is not None:
        raise PolicyError("The policy is for several tables.", hint="Linked tables are released once, by anonymize.")
    return _whole(data, policy)


def _whole(data: Data, policy: Policy | None = None) -> pa.Table:
    """A table in memory or at a place, with what the policy calls missing taken out."""
    if isinstance(data, str | os.PathLike):
        return read_input(os.fspath(data), policy)
    return without_markers(table_of(data), policy.missing if policy is not None else ())


def _holds(store: Place) -> bool:
    if not Store.exists(store):
        return False
    with Store.open(store, create=False) as opened:
        return evolving.Evolving.kind in opened.publishers()


def _about(store: Store) -> tuple[Policy, int | None]:
    """The policy a table was begun under, and its seed if it has one."""
    name = evolving.Evolving.kind
    if name not in store.publishers():
        raise StateError("The store holds no evolving table.", hint="Run `reticent evolve init` first.")
    about = json.loads(store.get(name, name, _ABOUT) or b"{}")
    if not about:
        refuse_closed(store, name)
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
