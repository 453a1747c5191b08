"""The attacker who knows the transitions: what is learned from a person's candidates over several events.

Sets do not say which candidate became which. The slot of the true value is a hidden chain: it moves by the attacker's kernel,
while the other l - 1 candidates move by the published kernel in any assignment, a permanent for every pair of slots.

Not covered: with more than `MAX_EXACT` candidates the attacker is told which became which, and the figure is an upper bound.

Cost: 2^l l products per event for all persons at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.engine.veil.prior.kernel import AttackerKernel, Kernel
from reticent.engine.veil.prior.prior import Prior, draw_candidates, random_permutations

MAX_EXACT = 12
"""Most candidates for which all assignments of the false candidates are summed."""
# Most persons to follow: more make the figure hardly more exact.
_MAX_PERSONS = 2_000


@dataclass(frozen=True)
class TrajectoryScore:
    """How well an attacker who follows persons guesses their last value.

    Attributes:
        events: number of events seen of each person.
        persons: number of persons.
        right: how often the best guess is right.
        error: standard error of `right`.
        published: how often an attacker is right who knows the published kernel only.
    """

    events: int
    persons: int
    right: float
    error: float
    published: float


def attack_trajectories(
    prior: Prior,
    kernel: Kernel,
    attacker_kernel: AttackerKernel,
    strata: Integers,
    true_values: Integers,
    *,
    l: int,
    rng: np.random.Generator,
) -> TrajectoryScore:
    """Veil persons over their events as the engine does, and guess the last value with the attacker's kernel.

    `strata` has one entry per person, `true_values` is persons x events.
    """
    strata, true_values = strata[:_MAX_PERSONS], true_values[:_MAX_PERSONS]
    permutations = random_permutations(len(prior.labels), rng)
    slots = draw_candidates(true_values[:, 0], strata, prior.segments(l), permutations, rng)
    true = _true_slot(slots, true_values[:, 0])
    informed, uninformed = np.ones(slots.shape), np.ones(slots.shape)
    for event in range(1, true_values.shape[1]):
        for stratum in np.unique(strata):
            at = np.flatnonzero(strata == stratum)
            matrix = kernel.matrix(prior.shares[stratum])
            after, true[at] = _move_slots(slots[at], true[at], true_values[at, event], matrix, rng)
            published = _transition_probabilities(matrix, slots[at], after)
            own = _transition_probabilities(attacker_kernel.matrix(matrix), slots[at], after)
            informed[at] = _update_belief(informed[at], own, published)
            uninformed[at] = _update_belief(uninformed[at], published, published)
            slots[at] = after
    last, size = true_values[:, -1], len(prior.labels)
    right, baseline = (_guess_accuracy(slots, belief, last, size) for belief in (informed, uninformed))
    share = float(right.mean())
    error = float(right.std() / np.sqrt(len(right)))
    return TrajectoryScore(true_values.shape[1], len(right), share, error, float(baseline.mean()))


def _true_slot(slots: Integers, values: Integers) -> Integers:
    """Return the slot with the true value, -1 where none has it; any of several copies will do."""
    same = slots == values[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _move_slots(
    slots: Integers, true: Integers, values: Integers, matrix: Floats, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return the slots one event later, and the true slot; a transition that the kernel excludes loses the person."""
    borders = matrix.cumsum(axis=1)
    borders[:, -1] = 1.0
    after = np.empty_like(slots)
    for slot in range(slots.shape[1]):
        draws = rng.random(len(slots))
        after[:, slot] = (draws[:, None] >= borders[slots[:, slot]]).sum(axis=1)
    at = np.flatnonzero(true >= 0)
    reached = matrix[slots[at, true[at]], values[at]] > 0
    true[at[~reached]] = -1
    stays = at[reached]
    after[stays, true[stays]] = values[stays]
    return after, true


def _transition_probabilities(matrix: Floats, before: Integers, after: Integers) -> Floats:
    """Return the probability of each candidate to become each of the next, persons x l x l."""
    return np.asarray(matrix[before[:, :, None], after[:, None, :]])


def _update_belief(belief: Floats, own: Floats, false_candidates: Floats) -> Floats:
    """Return the attacker's belief in the slots of the next set."""
    if belief.shape[1] <= MAX_EXACT:
        place = (belief[:, :, None] * own * minor_permanents(false_candidates)).sum(axis=1)
    else:
        place = belief * np.einsum("pss->ps", own) / np.einsum("pss->ps", false_candidates)
    return np.asarray(place / np.maximum(place.sum(axis=1, keepdims=True), np.finfo(float).tiny))


def minor_permanents(matrices: Floats) -> Floats:
    """Return per row and column the permanent of each matrix without them, the sum over all assignments of the others.

    Rows above the missing one take a set of the columns, rows below it take the rest.
    """
    size = matrices.shape[1]
    above, below = _partial_permanents(matrices), _partial_permanents(matrices[:, ::-1])
    out = np.zeros_like(matrices)
    whole = (1 << size) - 1
    for taken, ways in above.items():
        row = taken.bit_count()
        for column in range(size):
            if row < size and not taken >> column & 1:
                out[:, row, column] += ways * below[whole ^ taken ^ 1 << column]
    return out


def _partial_permanents(matrices: Floats) -> dict[int, Floats]:
    """Return per set of columns the sum over all assignments of the first rows, equal in number, to these columns."""
    size = matrices.shape[1]
    ways = {0: np.ones(len(matrices))}
    for taken in range(1, 1 << size):
        row = taken.bit_count() - 1
        ways[taken] = sum(
            (ways[taken ^ 1 << column] * matrices[:, row, column] for column in range(size) if taken >> column & 1),
            np.zeros(len(matrices)),
        )
    return ways


def _guess_accuracy(slots: Integers, place: Floats, true_values: Integers, size: int) -> Floats:
    """Return the probability that the most likely value is the true value; ties are shared."""
    belief = np.zeros((len(slots), size))
    np.add.at(belief, (np.arange(len(slots))[:, None], slots), place)
    best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-9)
    return np.asarray(best[np.arange(len(slots)), true_values] / best.sum(axis=1))
