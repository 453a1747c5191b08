"""The exact adversary of a sealed series: all worlds enumerated in rationals, for the algorithm as it is and with bugs planted."""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from reticent.engine.classes import choices, design
from reticent.engine.series.seats import seat

# Three components of two values; whoever arrives has the first value, later it moves with these probabilities.
MOVE = {0: (Fraction(9, 10), Fraction(1, 10)), 1: (Fraction(1, 2), Fraction(1, 2)), 2: (Fraction(1, 4), Fraction(3, 4))}
PRIOR = {0: Fraction(2, 5), 1: Fraction(2, 5), 2: Fraction(1, 5)}
M = 2


def worlds(people):
    """Every (probability, component of each person, class of each person) under the design."""
    classes = design(PRIOR, M)
    ways = choices(classes)
    for components in product(PRIOR, repeat=people):
        base = Fraction(1)
        for c in components:
            base *= PRIOR[c]
        for drawn in product(*(ways[c] for c in components)):
            chance = base
            for _, share in drawn:
                chance *= share
            yield chance, components, tuple(number for number, _ in drawn), classes


def groups_of(components, drawn, classes):
    """Groups as tuples of (component, person or None), seated by the engine's own rule."""
    out = []
    for number in sorted(set(drawn)):
        mine = [person for person, d in enumerate(drawn) if d == number]
        slots = classes[number].values
        table = seat(np.array([components[p] for p in mine], dtype=np.int32), np.array(slots, dtype=np.int32))
        out += [[(slot, mine[at] if at >= 0 else None) for slot, at in zip(slots, row, strict=True)] for row in table]
    return out


def honest(person, left):
    return MOVE


def frozen(person, left):
    """Planted: counterfeits do not move."""
    return {c: (Fraction(1), Fraction(0)) for c in MOVE} if person is None or person in left else MOVE


def posterior(people, left, law):
    """P(component of person | all that was released), the largest over transcripts, persons and components.

    Release 1 shows, per group, who is in it and its components; release 2 shows each trajectory's value. Persons in
    `left` are known to be gone by then; a counterfeit goes on in their place.
    """
    weight = defaultdict(lambda: defaultdict(Fraction))
    for chance, components, drawn, classes in worlds(people):
        seated = groups_of(components, drawn, classes)
        places = [(slot, person) for group in seated for slot, person in group]
        for outcome in product((0, 1), repeat=len(places)):
            p = chance
            for (slot, person), moved in zip(places, outcome, strict=True):
                p *= law(person, left)[slot][moved]
            if not p:
                continue
            shown, at = [], 0
            for group in seated:
                members = frozenset(person for _, person in group if person is not None)
                values = frozenset((slot, outcome[at + i]) for i, (slot, _) in enumerate(group))
                at += len(group)
                shown.append((members, values))
            weight[frozenset(shown)][components] += p
    worst = Fraction(0)
    for worlds_left in weight.values():
        total = sum(worlds_left.values())
        for person in range(people):
            for component in PRIOR:
                share = sum(p for world, p in worlds_left.items() if world[person] == component) / total
                worst = max(worst, share)
    return worst


@pytest.mark.parametrize(("people", "left"), [(1, ()), (2, ()), (3, ()), (3, (1,)), (3, (0, 2))])
def test_nobody_is_ever_surer_than_one_in_m(people, left):
    assert posterior(people, left, honest) == Fraction(1, M)


def test_the_adversary_notices_counterfeits_that_do_not_move():
    assert posterior(2, (), frozen) > Fraction(1, M)


def test_the_adversary_notices_a_class_drawn_without_the_design(monkeypatch):
    """Planted: the class is drawn evenly among those that hold the component."""
    import reticent.engine.classes as module

    even = {
        c: tuple((n, Fraction(1, len(w))) for n, _ in w) for c, w in module.choices(module.design(PRIOR, M)).items()
    }
    monkeypatch.setitem(globals(), "choices", lambda _: even)
    assert posterior(1, (), honest) > Fraction(1, M) or all(len(w) == 1 for w in even.values())


# First values inside a component: newcomers have them with these probabilities.
START = {0: (Fraction(1, 2), Fraction(1, 2)), 1: (Fraction(1, 3), Fraction(2, 3)), 2: (Fraction(1), Fraction(0))}


def from_prior(component, _):
    return START[component]


def copied(component, newcomers):
    """Planted: a counterfeit copies the value of some newcomer of its component."""
    if not newcomers[component]:
        return START[component]
    ones = Fraction(sum(newcomers[component]), len(newcomers[component]))
    return (1 - ones, ones)


def posterior_at_first(people, counterfeit):
    """The same for first values: one release, values shown at once."""
    weight = defaultdict(lambda: defaultdict(Fraction))
    for chance, components, drawn, classes in worlds(people):
        seated = groups_of(components, drawn, classes)
        places = [(slot, person) for group in seated for slot, person in group]
        for outcome in product((0, 1), repeat=len(places)):
            newcomers = {
                c: [v for (slot, p), v in zip(places, outcome, strict=True) if slot == c and p is not None]
                for c in PRIOR
            }
            p = chance
            for (slot, person), value in zip(places, outcome, strict=True):
                p *= (START[slot] if person is not None else counterfeit(slot, newcomers))[value]
            if not p:
                continue
            shown, at = [], 0
            for group in seated:
                members = frozenset(person for _, person in group if person is not None)
                shown.append((members, frozenset((slot, outcome[at + i]) for i, (slot, _) in enumerate(group))))
                at += len(group)
            weight[frozenset(shown)][components] += p
    return max(
        sum(p for world, p in left.items() if world[person] == component) / sum(left.values())
        for left in weight.values()
        for person in range(people)
        for component in PRIOR
    )


@pytest.mark.parametrize("people", [1, 2, 3])
def test_first_values_tell_nothing(people):
    assert posterior_at_first(people, from_prior) == Fraction(1, M)


def test_the_adversary_notices_counterfeits_copied_from_newcomers():
    assert posterior_at_first(3, copied) > Fraction(1, M)
