"""Publisher: the one contract all engines keep, so that any engine runs behind any source and in front of any sink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int64s, UInt64s
from reticent.engine.identifiers import prepare, refuse_unfit
from reticent.engine.rng import Rng
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.hierarchy import check_domain
from reticent.release import Guarantee, Kind, RecordCounts, Release

if TYPE_CHECKING:
    from reticent._core.table import CancellationToken


class Members(NamedTuple):
    """Who stood in which group of a release, side by side: keyed hashes of persons, and group numbers. Private."""

    persons: UInt64s
    groups: Int64s

    @classmethod
    def empty(cls) -> Members:
        """For releases that keep no account of persons."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))


class ShownEvents(NamedTuple):
    """What a release under a house shows of each person, by hashes that all its publications share. Private.

    Attributes:
        persons: each once.
        shown: a hash of what the first sight showed; 0 where only later events were shown.
        moved: whether later events were.
        alone: these persons may stand in no later publication.
    """

    persons: UInt64s
    first_hashes: UInt64s
    has_later: Bools
    exclusive: bool = False


class Original(NamedTuple):
    """The input of a table, and the row of it that each published row was made from. Private: for the judge inside."""

    table: pa.Table
    source_rows: Int64s


class Publisher(ABC):
    """Takes batches in and gives back what is now safe to publish.

    A batch is an Arrow table with exactly the columns of the policy; a single record is a batch of one. Input and
    policy are never changed. Time and randomness come in by argument.
    """

    kind: ClassVar[Kind]
    method: ClassVar[str]

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        refuse_unfit(policy, self.kind, self.method)
        self.policy, self.rng = policy, rng
        # Of the last release, for the judge, the ledger and who asks.
        self._figures: dict[str, float] = {}
        self._members = Members.empty()
        self._shown_events: ShownEvents | None = None
        self._original: Original | None = None

    @classmethod
    def pin_digest(cls, policy: Policy) -> str:  # noqa: ARG003 - for methods that are keyed by a house
        """A digest of what the key of a house pins for life; empty for methods that need no house."""
        return ""

    @classmethod
    def has_kernel(cls, policy: Policy) -> bool:  # noqa: ARG003 - for methods that are keyed by a house
        """Whether what is shown of a person moves along a kernel."""
        return False

    @property
    @abstractmethod
    def counts(self) -> RecordCounts:
        """Where the rows are: rows_in = published + held + suppressed, at any moment."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What holds for what was published so far."""

    @property
    def metrics(self) -> dict[str, float]:
        """The figures of what was published so far, or of the last release."""
        return self._figures

    def use_cancellation(self, cancellation: CancellationToken) -> None:  # noqa: B027 - for methods that search
        """Works within this watch from now on, where the method searches: whoever holds it may cancel the work."""

    def members(self) -> Members:
        """Who stood in which group or line of the last release, for the ledger."""
        return self._members

    def shown_events(self) -> ShownEvents | None:
        """What the last release shows of each person, for methods that are keyed by a house."""
        return self._shown_events

    def original(self) -> Original | None:
        """What the last release was made from, where the judge can compare it: never stored, never published."""
        return self._original

    @abstractmethod
    def push(self, batch: pa.Table) -> list[Release]:
        """Takes a batch in; gives back what is now safe."""

    def cut(self) -> list[Release]:
        """Publishes a version now (evolving tables and series)."""
        return []

    @abstractmethod
    def close(self) -> list[Release]:
        """Publishes or holds back all that is held."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """The whole private state; `restore` goes on from it as if nothing had happened."""

    @classmethod
    @abstractmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on from a snapshot; refuses one made under another policy."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.counts})"


def claims(policy: Policy, *, several: bool = False) -> dict[str, Any]:
    """What a release under this policy claims; of persons where it knows them, also for l and t if some have several records."""
    privacy = policy.privacy
    claim: dict[str, Any] = {}
    if privacy.k is not None:
        claim["k"] = privacy.k if policy.person is None else {"persons": privacy.k}
    for word, asked in (("l", privacy.l), ("t", privacy.t)):
        if asked is not None:
            claim[word] = {"persons": asked.to_plain()} if several else asked.to_plain()
    if privacy.average_risk is not None:
        claim["average_risk"] = privacy.average_risk
    if privacy.population_uniqueness is not None:
        claim["population_uniqueness"] = privacy.population_uniqueness.model_dump()
    if privacy.k_map is not None:
        claim["k_map"] = privacy.k_map.k
    return claim


def check_batch(batch: pa.Table, policy: Policy) -> pa.Table:
    """The batch with the policy's columns in the policy's order, identifiers treated; anything else is refused."""
    names = batch.column_names
    if len(set(names)) < len(names):
        raise DataError("The data has two columns of the same name.", hint="Rename one of them.")
    batch = prepare(batch, policy)
    policy.check_columns(batch.column_names)
    return batch.select(list(policy.columns))


def sole_sensitive(policy: Policy, sentence: str, hint: str = "Give one column the role sensitive.") -> str:
    """The one sensitive column; refuses a policy that has none or several."""
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"{sentence} exactly one sensitive column; the policy has {len(policy.sensitive)}.", hint=hint
        )
    return policy.sensitive[0]


def refuse_group_column(policy: Policy) -> None:
    """Refuses a released column by the name that numbers of groups have."""
    if "group" in policy.released:
        raise PolicyError(
            "A released column is called 'group', as the number of a group is.", hint="Rename the column."
        )


def check_values(table: pa.Table, policy: Policy, different: Mapping[str, pa.Array]) -> None:
    """Refuses values that lie outside their column's hierarchy, for engines that publish values as they are.

    `different` has the values of some columns once each.
    """
    for name in policy.released:
        hierarchy = policy.columns[name].hierarchy
        if hierarchy is not None:
            values = different[name] if name in different else table.column(name).unique()
            check_domain(hierarchy, values, column=name, base=policy.base)
