"""The variance of right guesses over all relabellings of a class: the formula against going through them all."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from reticent.audit.attack.outcome import SURE, Z, wilson
from reticent.audit.attack.relabelling import Guesses, design_effect


def by_hand(made):
    """Every permutation of every class's slots, applied to what is true."""
    totals = []
    classes = sorted(set(made.alike.tolist()))
    width = made.offered.shape[1]
    for chosen in product(permutations(range(width)), repeat=len(classes)):
        renamed = np.array(chosen)[np.searchsorted(classes, made.alike)]
        named = np.take_along_axis(made.offered, renamed, axis=1) == made.code[:, None]
        totals.append((made.chance * named).sum())
    share = np.mean(totals) / len(made.code)
    return np.var(totals) / (len(made.code) * share * (1 - share))


def drawn(rng, records, width, *, offered, same):
    alike = rng.integers(0, 2, records)
    true = rng.integers(0, width, records)
    guess = true % 2 if same else rng.integers(0, width, records)
    codes = np.array(offered)[alike]
    return Guesses(codes, alike, codes[np.arange(records), guess], np.eye(width)[true])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("offered", [[[0, 1, 2], [2, 3, 4]], [[0, 0, 1, 2], [0, 1, 1, 3]]])
def test_it_equals_going_through_all_relabellings(seed, offered):
    made = drawn(np.random.default_rng(seed), 30, len(offered[0]), offered=offered, same=seed % 2 == 0)
    assert design_effect(made) == pytest.approx(max(1.0, by_hand(made)))


def relabelled(made, rng, many):
    """Shares of right guesses over random relabellings, and the design effect, which no relabelling changes."""
    width, totals = made.offered.shape[1], np.zeros(many)
    for number in np.unique(made.alike):
        rows = made.alike == number
        right = made.chance[rows].T @ (made.offered[rows] == made.code[rows, None])
        orders = rng.permuted(np.tile(np.arange(width), (many, 1)), axis=1)
        totals += right[np.arange(width), orders].sum(axis=1)
    return totals / len(made.code), design_effect(made)


def test_the_interval_covers_as_often_as_it_says():
    """A thousand records in twelve classes; the guess hangs on a state that tells the slot, only not which one it is."""
    rng = np.random.default_rng(4)
    alike, true = rng.integers(0, 12, 1000), rng.integers(0, 10, 1000)
    state = np.where(rng.random(1000) < 0.5, true, rng.integers(0, 10, 1000))
    guess = np.array([rng.permutation(10) for _ in range(12)])[alike, state]
    shares, design = relabelled(Guesses(np.tile(np.arange(10), (1000, 1)), alike, guess, np.eye(10)[true]), rng, 20_000)
    assert design > 2
    missed = {z: _missed(shares, 1000 / design, z) for z in (Z, 2.5758, SURE)}
    assert missed[Z] < 0.06
    assert missed[2.5758] < 0.02
    assert missed[SURE] < 0.0002
    assert _missed(shares, 1000, Z) > 0.15  # as if guesses were independent


def _missed(shares, tried, z):
    bounds = {share: wilson(share * tried, tried, z) for share in np.unique(shares)}
    return float(np.mean([not bounds[share][0] <= 0.1 <= bounds[share][1] for share in shares]))


def test_guesses_that_stand_and_fall_together_are_worth_few():
    """A hundred records, all in one of two slots, always guessed alike: everything is right, or nothing."""
    true = np.repeat([0, 1], 50)
    made = Guesses(np.tile([0, 1], (100, 1)), np.zeros(100, dtype=int), true, np.eye(2)[true])
    assert design_effect(made) == pytest.approx(100)


def test_groups_with_fewer_slots_count_their_own():
    offered = np.array([[0, 1, -1]] * 4 + [[0, 1, 2]] * 6)
    alike, true = np.repeat([0, 1], [4, 6]), np.array([0, 1] * 5)
    right = [0, 0, 0, 3, 3, 4, 4, 4, 6, 7, 7, 10]  # over the 2! x 3! relabellings
    found = design_effect(Guesses(offered, alike, true, np.eye(3)[true]))
    assert found == pytest.approx(np.var(right) / (10 * 0.4 * 0.6))


def test_nobody_tried_gives_nothing_to_widen():
    none = np.zeros(0, dtype=int)
    assert design_effect(Guesses(np.zeros((0, 2), dtype=int), none, none, np.zeros((0, 2)))) == 1
