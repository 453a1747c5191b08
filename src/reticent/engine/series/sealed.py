"""Sealed: groups for life. Whoever is published together stays together, and every value moves inside its own component.

The components of the update graph (values that can never become one another) are the slots. A newcomer draws a class of m components from its own
component alone, by the exact design of `engine/classes.py`; newcomers of one release and class are seated into groups with one record per component; gaps are
counterfeits. From then on the group shows, release by release, the current value of each of its m trajectories. A member who leaves, or whose value moves
against the update knowledge, is followed by a counterfeit whose values are drawn from the update probabilities. Nobody ever joins a group that was published.

Guarantee: posterior of every candidate value, in every release, at most 1/m relative to the design prior and the update probabilities, records independent
    given them; against a reader who knows the algorithm, the design, all releases and every quasi-identifier, and who may reason over all persons jointly.
Not covered: leaving that depends on the value; priors or updates that depend on the quasi-identifiers; readers who know other people's values; whether
    a person is in the table. A person who missed a release is held back: joining again would show two ends of one trajectory.
Cost: O(n log n) per release; counterfeits grow with the members who leave.
Reference: ours. Proof in `docs/series.md`; exact adversary in `tests/attack/test_series_adversary.py`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.engine.classes import choices, design
from reticent.engine.series.grouping import NO_DESIGN, OUTSIDE, RETURNED, Grouping
from reticent.engine.series.publisher import SeriesPublisher
from reticent.engine.series.seats import Seats, seat, spread
from reticent.engine.series.sug import risk_of
from reticent.policy.prior import read_prior

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.engine.series.history import History
    from reticent.engine.series.risk_limit import People
    from reticent.engine.series.sug import Risk
    from reticent.policy import Policy
    from reticent.policy.updates import Updates

    Draws = npt.NDArray[np.float64]


class SealedSeries(SeriesPublisher):
    """The next release with groups for life."""

    method = "sealed"
    not_covered = (
        "whether a person is in the table",
        "a reader who knows others' sensitive values",
        "leaving that depends on the value",
        "priors or updates that depend on the quasi-identifiers, or differ from the ones stated",
    )

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self.seats = Seats.empty(policy.group_size)
        self.prior: dict[str, int] = {}
        self._next: Seats | None = None

    def _group(self, people: People, updates: Updates, where: npt.NDArray[np.float32]) -> Grouping:
        if not self.prior:
            self.prior = self._first_prior(people, updates)
        held = self._held(people, updates)
        seats = self._go_on(people, updates, held)
        seats = self._seat_newcomers(people, updates, where, held, seats)
        self._next = seats
        return self._show(people, seats, held)

    def _held(self, people: People, updates: Updates) -> npt.NDArray[np.uint8]:
        """Who cannot be published: returned after missing a release, moved against the knowledge, or without a class."""
        last = self.history.last(people.hashes)
        old = last >= 0
        held = np.zeros(len(last), dtype=np.uint8)
        if old.any():
            held[old] = np.where(self.history.release[last[old]] < self.history.releases, RETURNED, 0)
            before, now = self.history.value[last[old]], people.values[old]
            legal = np.asarray(updates.matrix[before, now]).ravel() > 0
            held[old] = np.where(~legal & (held[old] == 0), OUTSIDE, held[old])
        slots = np.array(sorted(self._ways(updates)), dtype=np.int32)
        held[~old & ~np.isin(updates.components[people.values], slots)] = NO_DESIGN
        return held

    def _go_on(self, people: People, updates: Updates, held: npt.NDArray[np.uint8]) -> Seats:
        """Every trajectory moves on: members show their value, counterfeits draw one; groups without members end."""
        row_of = {int(h): i for i, h in enumerate(people.hashes) if held[i] == 0}
        members = self.seats.members
        rows = np.array([row_of.get(int(h), -1) for h in members.ravel()], dtype=np.int64).reshape(members.shape)
        rows = np.where(self.seats.real, rows, -1)
        drawn = _moved(self.seats.values, updates, self._draws("moves", self.seats.values.size))
        values = np.where(rows >= 0, people.values[np.maximum(rows, 0)], drawn).astype(np.int32)
        return Seats(members, rows >= 0, values).alive()

    def _seat_newcomers(
        self,
        people: People,
        updates: Updates,
        where: npt.NDArray[np.float32],
        held: npt.NDArray[np.uint8],
        seats: Seats,
    ) -> Seats:
        new = np.flatnonzero((self.history.last(people.hashes) < 0) & (held == 0))
        if not len(new):
            return seats
        classes = design(self._shares(updates), self.policy.group_size)
        ways = choices(classes)
        component = updates.components[people.values[new]]
        draws = self._draws("classes", len(new))
        chosen = np.array([_choose(ways[int(c)], u) for c, u in zip(component, draws, strict=True)], dtype=np.int64)
        order = spread(where[new])
        first = _within(updates, self.prior)
        for number in np.unique(chosen):
            mine = order[chosen[order] == number]
            table = seat(component[mine], np.array(classes[number].values, dtype=np.int32))
            rows = np.where(table >= 0, new[mine][np.maximum(table, 0)], -1)
            fakes = _starts(classes[number].values, first, self._draws(f"starts {number}", rows.size), rows.shape)
            values = np.where(rows >= 0, people.values[np.maximum(rows, 0)], fakes).astype(np.int32)
            members = np.where(rows >= 0, people.hashes[np.maximum(rows, 0)], np.uint64(0))
            seats = seats.join(Seats(members, rows >= 0, values))
        return seats

    def _show(self, people: People, seats: Seats, held: npt.NDArray[np.uint8]) -> Grouping:
        """The groups in random order, values sorted inside each; a counterfeit borrows the place of a member."""
        row_of = {int(h): i for i, h in enumerate(people.hashes)}
        flat = zip(seats.members.ravel().tolist(), seats.real.ravel().tolist(), strict=True)
        rows = np.array([row_of[h] if real else -1 for h, real in flat], dtype=np.int32).reshape(seats.real.shape)
        shuffled = _core.random.permutation(len(rows), key=self._key("order"))
        rows, values = rows[shuffled], seats.values[shuffled]
        inner = np.argsort(values, axis=1, kind="stable")
        rows, values = np.take_along_axis(rows, inner, 1), np.take_along_axis(values, inner, 1)
        donor = np.where(rows >= 0, rows, rows.max(axis=1, keepdims=True, initial=-1))
        offsets = np.arange(len(rows) + 1, dtype=np.int64) * self.policy.group_size
        return Grouping(offsets, rows.ravel(), values.ravel(), donor.ravel().astype(np.int32), held)

    def _limit(self, people: People, updates: Updates, grouping: Grouping) -> tuple[Grouping, History, Risk]:
        """The bound holds by construction; what is measured is reported."""
        rows, group, value = grouping.published()
        after = self.history.extend(
            people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value)
        )
        return grouping, after, risk_of(after, updates, after.last(people.hashes[rows]))

    def _publish(self, table: pa.Table) -> Any:
        prior = dict(self.prior)
        try:
            release = super()._publish(table)
        except BaseException:
            self.prior = prior
            raise
        self.seats, self._next = self._next or self.seats, None
        return release

    def _claims(self) -> dict[str, Any]:
        return {self.method: self.policy.m, "posterior": 1 / self.policy.group_size}

    def _metrics(self, grouping: Grouping, risk: Risk) -> dict[str, float]:
        found = super()._metrics(grouping, risk)
        return found | {"max_risk": 1 / self.policy.group_size, "sug_risk": found["max_risk"]}

    def _ways(self, updates: Updates) -> set[int]:
        return {component for component, share in self._shares(updates).items() if share}

    def _shares(self, updates: Updates) -> dict[int, int]:
        """Design prior over components; values seen since then have no share."""
        shares: Counter[int] = Counter()
        for value, count in self.prior.items():
            code = updates.codes.get(value)
            if code is not None:
                shares[int(updates.components[code])] += count
        return dict(shares)

    def _first_prior(self, people: People, updates: Updates) -> dict[str, int]:
        """From the policy's file, or how often each value occurs in the first release; one more for every value known."""
        if self.policy.prior is not None and self.policy.prior.file is not None:
            counts = read_prior(self.policy.path(self.policy.prior.file), "prior")
            return {value or "": count for value, count in counts.items()}
        seen = np.bincount(people.values, minlength=len(updates))
        return {str(value): int(n) + 1 for value, n in zip(updates.values, seen, strict=True) if value is not None}

    def _draws(self, purpose: str, n: int) -> Draws:
        """Numbers in [0, 1) from a keyed hash: nobody without the key can tell a drawn value from a true one."""
        data = hashlib.shake_256(self._key(purpose)).digest(8 * n)
        return (np.frombuffer(data, dtype=np.uint64) >> np.uint64(11)).astype(np.float64) / float(1 << 53)

    def _extra_state(self) -> dict[str, Any]:
        return {"prior": self.prior}

    def _extra_tables(self) -> dict[str, pa.Table]:
        return self.seats.to_tables()

    def _take_extra(self, state: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        self.prior = state["prior"]
        self.seats = Seats.from_tables(tables, self.policy.group_size)


def _choose(ways: Any, draw: float) -> int:
    total = 0.0
    for number, share in ways:
        total += float(share)
        if draw < total:
            return int(number)
    return int(ways[-1][0])


def _moved(values: npt.NDArray[np.int32], updates: Updates, draws: Draws) -> npt.NDArray[np.int32]:
    """The next value of each trajectory, drawn from the update probabilities."""
    flat, out = values.ravel(), values.ravel().copy()
    indptr, indices, weights = updates.steps(1)[0]
    for value in np.unique(flat):
        row = slice(indptr[value], indptr[value + 1])
        borders = np.cumsum(weights[row])
        there = flat == value
        at = np.searchsorted(borders, draws[there] * borders[-1], side="right")
        out[there] = indices[row][np.minimum(at, len(borders) - 1)]
    return out.reshape(values.shape)


def _within(updates: Updates, prior: dict[str, int]) -> dict[int, Any]:
    """Per component the values newcomers start with, and how often, by the design prior.

    Never by the newcomers themselves: a counterfeit that copies one of them would mark the values that occur once as true.
    """
    known = np.array([prior.get(str(value), 0) for value in updates.values], dtype=np.float64)
    out = {}
    for component in range(int(updates.components.max()) + 1):
        codes = np.flatnonzero(updates.components == component)
        weights = known[codes] if known[codes].sum() else np.ones(len(codes))
        out[component] = (codes, np.cumsum(weights) / weights.sum())
    return out


def _starts(
    slots: tuple[int, ...], first: dict[int, Any], draws: Draws, shape: tuple[int, ...]
) -> npt.NDArray[np.int32]:
    """A first value for every place, as newcomers of its component have it."""
    table = draws.reshape(shape)
    columns = []
    for at, component in enumerate(slots):
        codes, borders = first[component]
        columns.append(codes[np.minimum(np.searchsorted(borders, table[:, at], side="right"), len(codes) - 1)])
    return np.stack(columns, axis=1).astype(np.int32)
