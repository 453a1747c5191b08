"""Exact adversary: every world, every random choice, every transcript of two publications of a small table.

The reader knows the method, the design, all changes and who is where. For each transcript the posterior of every person
is computed with exact fractions; under sealed it is 1/l for every value of the class, in every transcript.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import evolving_twins as twins
import pytest

from reticent.engine.classes import choices, design


class Choices:
    """Walks all outcomes of `below(n)` calls; the product of 1/n is the probability of a walk."""

    def __init__(self) -> None:
        self.path: list[list[int]] = []
        self.at = 0

    def below(self, n: int) -> int:
        if self.at == len(self.path):
            self.path.append([0, n])
        self.at += 1
        return self.path[self.at - 1][0]

    @property
    def probability(self) -> Fraction:
        found = Fraction(1)
        for _, n in self.path[: self.at]:
            found /= n
        return found

    def next(self) -> bool:
        self.path, self.at = self.path[: self.at], 0
        while self.path and self.path[-1][0] == self.path[-1][1] - 1:
            self.path.pop()
        if self.path:
            self.path[-1][0] += 1
        return bool(self.path)


def shown(people, classes, seats):
    groups = defaultdict(set)
    for person, c, seat in zip(people, classes, seats, strict=True):
        groups[c, seat].add(person)
    return frozenset((c, frozenset(members)) for (c, _), members in groups.items())


def publish(people, world, drawn, seats, below):
    classes, values = [drawn[p] for p in people], [world[p] for p in people]
    found = twins.seat(classes, values, [seats.get(p, -1) for p in people], below)
    seats.update(zip(people, found, strict=True))
    return shown(people, classes, found)


def transcripts(prior, l, history, *, redraw=False):
    """Probability of (world, transcript); `history` lists who is in the table at each publication."""
    ways, total = choices(design(prior, l)), sum(prior.values())
    everyone = sorted(set().union(*history))
    for values in product(prior, repeat=len(everyone)):
        world = dict(zip(everyone, values, strict=True))
        chance = Fraction(1)
        for value in values:
            chance *= Fraction(prior[value], total)
        rounds = len(history) if redraw else 1
        for draws in product(*(ways[world[p]] for p in everyone for _ in range(rounds))):
            likely = chance
            for _, share in draws:
                likely *= share
            walk = Choices()
            while True:
                seats, seen = {}, []
                for number, people in enumerate(history):
                    offset = number if redraw else 0
                    drawn = {p: draws[i * rounds + offset][0] for i, p in enumerate(everyone)}
                    seats = {} if redraw else {p: g for p, g in seats.items() if p in people}
                    seen.append(publish(people, world, drawn, seats, walk.below))
                yield world, tuple(seen), likely * walk.probability
                if not walk.next():
                    break


def worst(prior, l, history, **how):
    """The largest posterior of any person for any value, over all transcripts."""
    weight, joint = defaultdict(Fraction), defaultdict(Fraction)
    for world, seen, chance in transcripts(prior, l, history, **how):
        weight[seen] += chance
        for person, value in world.items():
            joint[seen, person, value] += chance
    assert sum(weight.values()) == 1
    return max(part / weight[seen] for (seen, _, _), part in joint.items())


@pytest.mark.parametrize(
    ("prior", "l", "history"),
    [
        ({0: 2, 1: 1, 2: 1}, 2, [[0, 1, 2], [1, 2, 3]]),
        ({0: 1, 1: 1, 2: 1}, 2, [[0, 1], [0, 1, 2]]),
        ({0: 1, 1: 1}, 2, [[0, 1, 2], [0, 1], [0, 1, 3]]),
        ({0: 1, 1: 1, 2: 1}, 3, [[0, 1, 2], [0, 3]]),
        ({0: 3, 1: 2, 2: 1}, 2, [[0, 1], [1], [1, 2]]),
    ],
)
def test_no_transcript_raises_a_posterior_above_one_in_l(prior, l, history):
    assert worst(prior, l, history) == Fraction(1, l)


def test_the_adversary_notices_classes_drawn_anew():
    assert worst({0: 2, 1: 1, 2: 1}, 2, [[0, 1], [0, 1]], redraw=True) == 1
