"""The setting of Li and Zhou's experiments: a synthetic census with the paper's domain sizes that changes over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from reticent import _core
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.history import History
from reticent.engine.series.m_distinct import FirstGroupRules, form_groups
from reticent.engine.series.update_graph import People
from reticent.errors import GuaranteeError, InternalError
from reticent.policy.updates import Updates

SIZES = {"age": 100, "gender": 2, "marital_status": 6, "education": 17, "occupation": 50}
QUASI = ("age", "gender", "marital_status", "education")


@dataclass(frozen=True)
class Setting:
    """The paper's parameters (section VI-A)."""

    first: int = 20_000
    deleted: int = 2_000
    inserted: int = 5_000
    updated: int = 5_000
    releases: int = 20
    diameter: int = 10
    seed: int = 1


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The table at one release: persons, codes of their quasi-identifiers, sensitive codes."""

    persons: npt.NDArray[np.uint64]
    quasi: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]

    @property
    def records(self) -> npt.NDArray[np.int32]:
        """All attributes, with the sensitive one last."""
        return np.column_stack([self.quasi, self.values]).astype(np.int32)

    @property
    def points(self) -> npt.NDArray[np.float32]:
        """The quasi-identifiers, scaled to their domains."""
        sizes = np.array([SIZES[name] - 1 for name in QUASI], dtype=np.float32)
        return np.ascontiguousarray(self.quasi / sizes, dtype=np.float32)

    @property
    def people(self) -> People:
        """The records in the form that the engines need."""
        return People(self.persons, np.zeros(len(self.persons), dtype=np.uint64), self.values)


def census(n: int, seed: int) -> npt.NDArray[np.int32]:
    """Return the synthetic census as codes, occupation last and shuffled, so that codes do not follow frequency."""
    from reticent.datasets import census as source

    table = source.generate(n, seed, layout="m-distinct")
    columns = []
    for name, size in SIZES.items():
        shown = table.column(name).to_pylist()
        order = {value: code for code, value in enumerate(sorted(set(shown)))}
        codes = np.array([order[value] for value in shown], dtype=np.int32)
        if name == "age":
            codes = np.array([int(value) - 1 for value in shown], dtype=np.int32)
        if name == "occupation":
            codes = np.random.default_rng(seed).permutation(size).astype(np.int32)[codes]
        columns.append(np.minimum(codes, size - 1))
    return np.column_stack(columns)


def diameter(d: int) -> Updates:
    """Return an update graph in which occupations change within runs of d, all equally likely."""
    size = SIZES["occupation"]
    run = np.arange(size) // d
    same = run[:, None] == run[None, :]
    matrix = sparse.csr_array(same / same.sum(axis=1, keepdims=True))
    matrix.sort_indices()
    return Updates(tuple(str(i) for i in range(size)), matrix)


def snapshots(setting: Setting, pool: npt.NDArray[np.int32]) -> Iterator[Snapshot]:
    """Yield the table release by release: people leave and arrive, age, and some change status, degree or job."""
    rng = np.random.default_rng(setting.seed)
    order = rng.permutation(len(pool))
    alive, used = order[: setting.first], setting.first
    state = pool.copy()
    for number in range(setting.releases):
        if number:
            alive = rng.choice(alive, len(alive) - setting.deleted, replace=False)
            _age(state, alive, rng)
            changed = rng.choice(alive, min(setting.updated, len(alive)), replace=False)
            runs = state[changed, 4] // setting.diameter
            last = np.minimum((runs + 1) * setting.diameter, SIZES["occupation"])
            state[changed, 4] = rng.integers(runs * setting.diameter, last)
            alive = np.concatenate([alive, order[used : used + setting.inserted]])
            used += setting.inserted
        chosen = np.sort(alive)
        rows = state[chosen]
        yield Snapshot(chosen.astype(np.uint64), np.ascontiguousarray(rows[:, :4]), np.ascontiguousarray(rows[:, 4]))


def _age(state: npt.NDArray[np.int32], alive: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
    """Age everybody by one year; one in twenty changes marital status (never to the first), one in twenty education."""
    state[alive, 0] = np.minimum(state[alive, 0] + 1, SIZES["age"] - 1)
    married = alive[rng.random(len(alive)) < 0.05]
    state[married, 2] = rng.integers(1, SIZES["marital_status"], len(married))
    educated = alive[rng.random(len(alive)) < 0.05]
    state[educated, 3] = np.minimum(state[educated, 3] + 1, SIZES["education"] - 1)


def l_diverse(values: npt.NDArray[np.int32], where: npt.NDArray[np.float32], *, l: int) -> Grouping:
    """Form groups of at least l distinct values with similar quasi-identifiers; values may repeat in a group.

    Guarantee: every group has at least l distinct values, against an attacker who sees only this release.
    Not covered: an attacker with two releases, which together disclose most values (see
        `docs/reproduce/m-distinct.md`).
    Cost: O(n log n) in the native core.
    Reference: A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006.
    Differences: cuts as in K. LeFevre et al., "Mondrian", ICDE 2006; `series: {method: l-diversity}` cuts better.
    """
    cuts = _core.series.group_l_diverse(values, where, l=l)
    if not cuts.count:
        raise GuaranteeError(f"The table has fewer than {l} distinct values; nothing was published.", hint="Lower l.")
    group = cuts.groups
    order = np.lexsort((values, group)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64)
    return Grouping(offsets, order, values[order], order, np.zeros(len(values), dtype=np.uint8))


@dataclass(repr=False)
class Series:
    """A series published by one method without the gate, as in the paper."""

    method: str
    m: int
    updates: Updates
    still: Updates = field(default_factory=lambda: diameter(1))
    history: History = field(default_factory=History)

    def publish(self, table: Snapshot) -> Grouping:
        """Publish the next release."""
        people = table.people
        if self.method == "l-diversity":
            grouping: Grouping | None = l_diverse(table.values, table.points, l=self.m)
        else:
            still = self.method == "m-invariance"
            knowledge = self.still if still else self.updates
            colors = np.arange(len(knowledge), dtype=np.int32)
            key = self.history.releases.to_bytes(32, "little")
            grouping = form_groups(
                self.history, knowledge, people, table.points, FirstGroupRules(self.m, colors, key, static_values=still)
            )
        if grouping is None:
            raise InternalError("Fifty occupations were not enough for first groups.")
        rows, group, value = grouping.published_records()
        self.history = self.history.extend(
            people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value)
        )
        return grouping
