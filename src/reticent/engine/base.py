"""Publisher: the contract of all engines, so that any engine works with any source and any sink."""

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
    """The persons and groups of a release, as parallel arrays: keyed hashes and group numbers. Private."""

    persons: UInt64s
    groups: Int64s

    @classmethod
    def empty(cls) -> Members:
        """Return no members, for releases that do not record persons."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))


class ShownEvents(NamedTuple):
    """What a veiled release shows of each person, by hashes that all publications under one veil key share. Private.

    Attributes:
        persons: each person once.
        first_hashes: a hash of what the first event showed; 0 where only later events were shown.
        has_later: whether later events were shown.
        exclusive: whether these persons must not be in any later publication.
    """

    persons: UInt64s
    first_hashes: UInt64s
    has_later: Bools
    exclusive: bool = False


class Original(NamedTuple):
    """The input of a table, and the source row of each published row. Private: for the verifier inside the institution."""

    table: pa.Table
    source_rows: Int64s


class Publisher(ABC):
    """Takes batches in and returns what can be published.

    A batch is an Arrow table with exactly the columns of the policy; a single record is a batch of one. Input and
    policy are never changed. Time and randomness come in by argument.
    """

    kind: ClassVar[Kind]
    method: ClassVar[str]

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        refuse_unfit(policy, self.kind, self.method)
        self.policy, self.rng = policy, rng
        # Of the last release, for the verifier, the ledger and callers.
        self._figures: dict[str, float] = {}
        self._members = Members.empty()
        self._shown_events: ShownEvents | None = None
        self._original: Original | None = None

    @classmethod
    def pin_digest(cls, policy: Policy) -> str:  # noqa: ARG003 - veiled methods override this
        """Return the digest of the parameter set that the store pins; empty for methods without one."""
        return ""

    @classmethod
    def has_kernel(cls, policy: Policy) -> bool:  # noqa: ARG003 - veiled methods override this
        """Whether candidates of a person change by a transition kernel."""
        return False

    @property
    @abstractmethod
    def counts(self) -> RecordCounts:
        """The numbers of records: input = published + withheld + suppressed, at any moment."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of everything published so far."""

    @property
    def metrics(self) -> dict[str, float]:
        """The figures of what was published so far, or of the last release."""
        return self._figures

    def use_cancellation(self, cancellation: CancellationToken) -> None:  # noqa: B027 - for methods that search
        """Use this cancellation token from now on, where the method searches; its owner can cancel the work."""

    def members(self) -> Members:
        """Return the persons and groups (or lines) of the last release, for the ledger."""
        return self._members

    def shown_events(self) -> ShownEvents | None:
        """Return what the last release shows of each person, for veiled methods."""
        return self._shown_events

    def original(self) -> Original | None:
        """Return the input of the last release, where the verifier can compare it; never stored, never published."""
        return self._original

    @abstractmethod
    def push(self, batch: pa.Table) -> list[Release]:
        """Take a batch in; return what can be published now."""

    def cut(self) -> list[Release]:
        """Publish a version now (evolving tables and series)."""
        return []

    @abstractmethod
    def close(self) -> list[Release]:
        """Publish or withhold all pending records."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """Return the whole private state, from which `restore` continues without a difference."""

    @classmethod
    @abstractmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Continue from a snapshot; refuses one of another policy."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.counts})"


def claims(policy: Policy, *, several: bool = False) -> dict[str, Any]:
    """Return the claims of a policy: about persons where it names them, for l and t if some have `several` records."""
    privacy = policy.privacy
    claim: dict[str, Any] = {}
    if privacy.k is not None:
        claim["k"] = privacy.k if policy.person is None else {"persons": privacy.k}
    for word, requirement in (("l", privacy.l), ("t", privacy.t)):
        if requirement is not None:
            claim[word] = {"persons": requirement.to_plain()} if several else requirement.to_plain()
    if privacy.average_risk is not None:
        claim["average_risk"] = privacy.average_risk
    if privacy.population_uniqueness is not None:
        claim["population_uniqueness"] = privacy.population_uniqueness.model_dump()
    if privacy.k_map is not None:
        claim["k_map"] = privacy.k_map.k
    return claim


def check_batch(batch: pa.Table, policy: Policy) -> pa.Table:
    """Return a batch with the policy's columns in its order, identifiers transformed; refuses missing or other columns."""
    names = batch.column_names
    if len(set(names)) < len(names):
        raise DataError("The data have two columns of the same name.", hint="Rename one of them.")
    batch = prepare(batch, policy)
    policy.check_columns(batch.column_names)
    return batch.select(list(policy.columns))


def sole_sensitive(policy: Policy, sentence: str, hint: str = "Give one column the role sensitive.") -> str:
    """Return the one sensitive column; refuses a policy with none or several."""
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"{sentence} exactly one sensitive column; the policy has {len(policy.sensitive)}.", hint=hint
        )
    return policy.sensitive[0]


def refuse_group_column(policy: Policy) -> None:
    """Refuse a released column with the name of the group column."""
    if "group" in policy.released:
        raise PolicyError(
            "The released column 'group' has the name of the column that Reticent adds.", hint="Rename the column."
        )


def check_values(table: pa.Table, policy: Policy, distinct: Mapping[str, pa.Array]) -> None:
    """Refuse values outside their column's hierarchy, for engines that publish values unchanged.

    `distinct` has the distinct values of some columns.
    """
    for name in policy.released:
        hierarchy = policy.columns[name].hierarchy
        if hierarchy is not None:
            values = distinct[name] if name in distinct else table.column(name).unique()
            check_domain(hierarchy, values, column=name, base=policy.base)
