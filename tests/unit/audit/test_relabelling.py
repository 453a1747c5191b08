"""The variance of right guesses over all relabellings of a class: the formula against going through them all."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

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
