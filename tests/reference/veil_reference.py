"""The veil in plain Python: the core equals it bit for bit, and with tiny units all its choices can be enumerated."""

import struct
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from chacha import ChaCha20

SLOT_LENGTH = 2**40
MASK = 2**64 - 1
QUESTIONS = {"stay": 0, "within": 1, "target": 2}


def segments(counts, l, slot_length=SLOT_LENGTH):
    """Largest remainder; ties go to the lower code."""
    exact = [Fraction(count * l * slot_length, sum(counts)) for count in counts]
    units = [int(share) for share in exact]
    by_remainder = sorted(range(len(counts)), key=lambda v: units[v] - exact[v])
    for v in by_remainder[: l * slot_length - sum(units)]:
        units[v] += 1
    return units


def random_permutations(size, count, seed):
    rng = ChaCha20(seed)
    permutations = [list(range(size)) for _ in range(count)]
    for order in permutations:
        rng.shuffle(order)
    return permutations


def hierarchy_permutations(levels, count, seed):
    """Every node draws a rank; values are sorted by the ranks on their way from the root."""
    rng = ChaCha20(seed)
    tree = [range(len(levels[0])), *levels]

    def order():
        ranks = [list(range(max(level) + 1)) for level in tree]
        for level in ranks:
            rng.shuffle(level)
        path = [[rank[node] for node in level] for rank, level in zip(ranks, tree, strict=True)]
        return sorted(tree[0], key=lambda v: [level[v] for level in reversed(path)])

    return [order() for _ in range(count)]


def siphash(key, words):
    """SipHash-2-4 of whole words."""

    def rotate(x, n):
        return (x << n | x >> (64 - n)) & MASK

    def rounds(a, b, c, d, n):
        for _ in range(n):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
            a, c = (rotate(a, 32) + d) & MASK, (c + b) & MASK
            b, d, c = rotate(b, 17) ^ c, rotate(d, 21) ^ a, rotate(c, 32)
        return a, b, c, d

    k0, k1 = key
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    for word in (*words, 8 * len(words) << 56):
        a, b, c, d = rounds(a, b, c, d ^ word, 2)
        a ^= word
    a, b, c, d = rounds(a, b, c ^ 0xFF, d, 4)
    return a ^ b ^ c ^ d


class Hashes:
    """Choices as functions of the veil key and of what they concern."""

    def __init__(self, key):
        rng = ChaCha20(key, stream=0x7665696C)
        blocks = [[rng.u64() for _ in range(4)] for _ in range(4)]
        self.keys = dict(zip(("order", "point", "unseen", "step"), [block[:2] for block in blocks], strict=True))

    def below(self, purpose, person, word, n):
        attempt = 0
        while True:
            wide = siphash(self.keys[purpose], (person, word, attempt)) * n
            if wide & MASK >= (2**64 - n) % n:
                return wide >> 64
            attempt += 1

    def pick(self, purpose, person, word, weights):
        """Index of the weight in which a point of their sum falls."""
        return bisect_right(list(accumulate(weights)), self.below(purpose, person, word, sum(weights)))


class Worlds:
    """A random function, asked in one of its worlds: the same question has the same answer, others are independent."""

    def __init__(self, script):
        self.script, self.answers, self.weight = list(script), {}, Fraction(1)
        self.asked = []

    def below(self, purpose, person, word, n):
        return self.pick(purpose, person, word, [1] * n)

    def pick(self, purpose, person, word, weights):
        question = (purpose, person, word)
        if question not in self.answers:
            options = [i for i, weight in enumerate(weights) if weight]
            at = self.script[len(self.asked)][0] if len(self.asked) < len(self.script) else 0
            self.asked.append((at, len(options)))
            self.answers[question] = options[at]
            self.weight *= Fraction(weights[options[at]], sum(weights))
        return self.answers[question]


def worlds(run):
    """Every outcome of `run(draws)` with its probability, over all answers of a random function."""
    script = []
    while True:
        draws = Worlds(script)
        outcome = run(draws)
        yield draws.weight, outcome
        script = draws.asked
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return
        script[-1] = (script[-1][0] + 1, script[-1][1])


class Still:
    """No kernel: nothing moves."""

    def law(self, units, v, kind):
        return {v: Fraction(1)}

    def next(self, units, v, kind, pick):
        return v


class Shares:
    """stay(v); of the changes a share within the parent node; the rest by the prior."""

    def __init__(self, stay, within, parents, slot_length=SLOT_LENGTH):
        self.stay, self.within, self.parents, self.slot_length = stay, within, parents, slot_length

    def others(self, units, v):
        """Targets by parent and code, and those of them under the same parent."""
        order = sorted(range(len(units)), key=lambda u: self.parents[u])
        everyone = [u for u in order if u != v and units[u]]
        return everyone, [u for u in everyone if self.parents[u] == self.parents[v]]

    def law(self, units, v, kind):
        everyone, near = self.others(units, v)
        stay = 0 if kind == "correction" else Fraction(self.stay[v], self.slot_length)
        if self.stay[v] == self.slot_length or not everyone:
            return {v: Fraction(1)}
        within = Fraction(self.within, self.slot_length) if near else 0
        law = {v: Fraction(stay)}
        for group, share in ((everyone, 1 - within), (near, within)):
            total = sum(units[u] for u in group)
            for u in group:
                law[u] = law.get(u, 0) + (1 - stay) * share * Fraction(units[u], total)
        return law

    def next(self, units, v, kind, pick):
        everyone, near = self.others(units, v)
        if self.stay[v] == self.slot_length or not everyone:
            return v
        if kind == "visit" and pick("stay", [self.stay[v], self.slot_length - self.stay[v]]) == 0:
            return v
        close = near and pick("within", [self.within, self.slot_length - self.within]) == 0
        targets = near if close else everyone
        return targets[pick("target", [units[u] for u in targets])]


class Matrix:
    """Targets with weights, written out: `rows[v]` is {target: weight}."""

    def __init__(self, rows):
        self.rows = rows

    def targets(self, v, kind):
        others = {u: weight for u, weight in sorted(self.rows[v].items()) if u != v}
        return dict(sorted(self.rows[v].items())) if kind == "visit" and others else others or {v: 1}

    def law(self, units, v, kind):
        targets = self.targets(v, kind)
        return {u: Fraction(weight, sum(targets.values())) for u, weight in targets.items()}

    def next(self, units, v, kind, pick):
        targets = self.targets(v, kind)
        if list(targets) == [v]:
            return v
        return list(targets)[pick("target", list(targets.values()))]


class Memory(NamedTuple):
    stratum: int
    event: int
    true_slot: int | None
    slots: tuple

    def to_bytes(self):
        true_slot = 255 if self.true_slot is None else self.true_slot
        return struct.pack(f"<HIBB{len(self.slots)}H", self.stratum, self.event, true_slot, 1, *self.slots)


class Veil:
    def __init__(self, draws, l, strata, permutations, kernel=None, slot_length=SLOT_LENGTH):
        self.draws, self.l, self.strata, self.permutations, self.slot_length = (
            draws,
            l,
            strata,
            permutations,
            slot_length,
        )
        self.kernel = kernel or Still()

    def line(self, stratum, order):
        """(value, begin, end) of every segment."""
        ends = [0, *accumulate(self.strata[stratum][v] for v in order)]
        return [(v, begin, end) for v, (begin, end) in zip(order, pairwise(ends), strict=True)]

    def slots(self, person, stratum, value, event=0):
        line = self.line(stratum, self.permutations[self.draws.below("order", person, 0, len(self.permutations))])
        true_slot = None
        if value >= 0 and self.strata[stratum][value]:
            begin = next(begin for v, begin, _ in line if v == value)
            x = begin + self.draws.below("point", person, value, self.strata[stratum][value])
            place, true_slot = x % self.slot_length, x // self.slot_length
        else:
            place = self.draws.below("unseen", person, event, self.slot_length)
        points = [place + j * self.slot_length for j in range(self.l)]
        return tuple(next(v for v, begin, end in line if begin <= x < end) for x in points), true_slot

    def candidates(self, person, stratum, value, event=0):
        return sorted(self.slots(person, stratum, value, event)[0])

    def begin(self, person, stratum, value):
        slots, true_slot = self.slots(person, stratum, value)
        return Memory(stratum, 0, true_slot, slots)

    def step(self, person, memory, value, kind="visit", event=None):
        event = memory.event + 1 if event is None else event
        units, steps = self.strata[memory.stratum], event - memory.event
        true_slot, slots = memory.true_slot, list(memory.slots)
        if true_slot is not None and value not in self.reachable(units, slots[true_slot], kind, steps):
            true_slot = None
        for slot in set(range(self.l)) - {true_slot}:
            for number in range(memory.event + 1, event + 1):

                def pick(question, weights, at=(number << 32 | slot << 16)):
                    return self.draws.pick("step", person, at | QUESTIONS[question], weights)

                slots[slot] = self.kernel.next(units, slots[slot], kind, pick)
        if true_slot is not None:
            slots[true_slot] = value
        return Memory(memory.stratum, event, true_slot, tuple(slots))

    def reachable(self, units, value, kind, steps):
        front = {value}
        for _ in range(steps):
            front = {u for v in front for u, share in self.kernel.law(units, v, kind).items() if share}
        return front
