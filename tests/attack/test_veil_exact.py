"""A reader who knows everything but the key, against the veil: exact, by enumeration of every choice.

The keyed function is replaced by all answers that a random function can give, units are tiny, probabilities are fractions. Every
slot must keep exactly 1/l and every value exactly copies/l; the neighbours of the veil that suggest themselves fail the same test.
"""

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import veil_reference as twin
from scipy import stats

from reticent._core import veil

UNSEEN = -1


class World(NamedTuple):
    """Units of a slot, stretches of the one row, orders, kernel."""

    l: int
    one: int
    units: tuple
    orders: tuple
    kernel: object = None

    def veil(self, draws):
        return twin.Veil(draws, self.l, [list(self.units)], self.orders, self.kernel, self.one)

    def prior(self):
        return {v: Fraction(units, self.l * self.one) for v, units in enumerate(self.units) if units}


def merged(pairs):
    """Probabilities by outcome."""
    law = defaultdict(Fraction)
    for weight, outcome in pairs:
        law[outcome] += weight
    return law


class Life(NamedTuple):
    """Values of a person, the slots at each event, the memory after the last."""

    values: tuple
    slots: tuple
    memory: twin.Memory

    def sets(self):
        return tuple(tuple(sorted(slots)) for slots in self.slots)


def first_sights(world, prior=None, person=1):
    prior = prior or world.prior()

    def lives():
        for value, share in prior.items():
            for weight, memory in twin.worlds(lambda draws, v=value: world.veil(draws).begin(person, 0, v)):
                yield share * weight, Life((value,), (memory.slots,), memory)

    return merged(lives())


def moved(world, lives, law, kind="visit", event=None, person=1):
    """The next event of every life; `law(v)` is where the reader believes a person goes."""

    def step(life, value, draws):
        return world.veil(draws).step(person, life.memory, value, kind, event)

    def later():
        for life, weight in lives.items():
            for value, share in law(life.values[-1]).items():
                for chance, memory in twin.worlds(lambda draws, a=life, b=value: step(a, b, draws)):
                    life_after = Life((*life.values, value), (*life.slots, memory.slots), memory)
                    yield weight * share * chance, life_after

    return merged(later())


def posteriors(lives, seen, secret):
    """For each thing seen, the posterior of the secret."""
    joint = defaultdict(lambda: defaultdict(Fraction))
    for life, weight in lives.items():
        joint[seen(life)][secret(life)] += weight
    return {sight: {s: w / sum(row.values()) for s, w in row.items()} for sight, row in joint.items()}


def slot_posteriors(lives):
    """What is known of the true slot by a reader who even sees which slot is which along the whole life."""
    return posteriors(lives, lambda life: life.slots, lambda life: life.memory.true_slot)


def value_posteriors(lives, event, seen=Life.sets):
    return posteriors(lives, seen, lambda life: life.values[event])


def weights(candidates):
    return {value: Fraction(copies, len(candidates)) for value, copies in Counter(candidates).items()}


def assert_exact(lives, l):
    assert sum(lives.values()) == 1
    for row in slot_posteriors(lives).values():
        assert row == dict.fromkeys(range(l), Fraction(1, l))
    for event in range(len(next(iter(lives)).values)):
        for sets, row in value_posteriors(lives, event).items():
            assert row == weights(sets[event])


def excess(lives, seen=Life.sets):
    """By how much the best reader beats the stated weight, over all events and sights."""

    def beyond(event, sets, row):
        stated = weights(sets[event])
        return max(share - stated.get(value, 0) for value, share in row.items())

    events = range(len(next(iter(lives)).values))
    return max(beyond(e, sets, row) for e in events for sets, row in value_posteriors(lives, e, seen).items())


ABC = ((0, 1, 2), (1, 0, 2))
ABCD = ((0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2))
FIRST = {
    "even": World(2, 3, (2, 2, 2), ABC),
    "uneven": World(2, 7, (1, 6, 7), ABC),
    "frequent": World(2, 3, (5, 1), ((0, 1), (1, 0))),
    "very frequent": World(4, 5, (13, 4, 2, 1), ABCD),
    "whole copies": World(3, 2, (4, 1, 1), ABC),
    "three": World(3, 4, (1, 2, 4, 5), ABCD),
    "four": World(4, 3, (1, 2, 3, 6), ABCD),
    "rare": World(3, 50, (1, 60, 89), ABC),
    "unseen cell": World(2, 4, (3, 0, 5), ABC),
}


@pytest.mark.parametrize("world", FIRST.values(), ids=FIRST)
def test_each_slot_is_true_with_one_in_l(world):
    lives = first_sights(world)
    assert_exact(lives, world.l)
    assert all(life.slots[0][life.memory.true_slot] == life.values[0] for life in lives)


def test_the_worked_example():
    """The one of docs/veil.md: stretches 1, 2, 3 in one order."""
    lives = first_sights(World(2, 3, (1, 2, 3), ((0, 1, 2),)))
    shown = posteriors(lives, lambda life: life.values[0], Life.sets)
    assert shown[1] == {((1, 2),): 1}
    assert shown[2] == {((0, 2),): Fraction(1, 3), ((1, 2),): Fraction(2, 3)}
    assert value_posteriors(lives, 0)[((1, 2),)] == {1: Fraction(1, 2), 2: Fraction(1, 2)}


@pytest.mark.parametrize("world", FIRST.values(), ids=FIRST)
def test_copies_of_a_value_are_its_share_rounded_down_or_up(world):
    for life in first_sights(world):
        copies = Counter(life.slots[0])
        for value, units in enumerate(world.units):
            assert copies[value] in {units // world.one, -(-units // world.one)}


def test_random_priors_are_exact():
    rng = np.random.default_rng(11)
    for _ in range(60):
        l, one, size = int(rng.integers(2, 5)), int(rng.integers(2, 6)), int(rng.integers(2, 6))
        cuts = np.sort(rng.integers(0, l * one + 1, size - 1)).tolist()
        units = tuple(b - a for a, b in zip([0, *cuts], [*cuts, l * one], strict=True))
        orders = tuple(tuple(rng.permutation(size).tolist()) for _ in range(2))
        assert_exact(first_sights(World(l, one, units, orders)), l)


@pytest.mark.parametrize("omission_rate", [Fraction(1, 10), Fraction(3, 10)])
def test_an_unseen_value_stays_at_its_own_share(omission_rate):
    """An outbreak of something the prior does not know: the sets tell nothing of who has it."""
    for world in FIRST.values():
        prior = {v: (1 - omission_rate) * share for v, share in world.prior().items()} | {UNSEEN: omission_rate}
        lives = first_sights(world, prior)
        for sets, row in value_posteriors(lives, 0).items():
            known = {v: (1 - omission_rate) * share for v, share in weights(sets[0]).items()}
            assert row == known | {UNSEEN: omission_rate}


def test_smoothing_an_unseen_value_would_expose_it():
    """The planted bug: a stretch of one unit for a value that in truth has three in ten."""
    world = World(2, 50, (1, 49, 50), ABC)
    prior = {0: Fraction(3, 10), 1: Fraction(7, 20), 2: Fraction(7, 20)}
    assert max(row.get(0, 0) for row in value_posteriors(first_sights(world, prior), 0).values()) > Fraction(9, 10)


def test_a_reader_who_knows_better_gains_her_own_odds_and_no_more():
    """kappa a / (kappa a + 1 - a), where her belief differs from the prior by at most kappa between candidates."""
    world = FIRST["three"]
    belief = {0: Fraction(1, 6), 1: Fraction(1, 6), 2: Fraction(1, 3), 3: Fraction(1, 3)}
    ratios = {v: belief[v] / share for v, share in world.prior().items()}
    for sets, row in value_posteriors(first_sights(world, belief), 0).items():
        offered = [ratios[v] for v in set(sets[0])]
        kappa = max(offered) / min(offered)
        for value, a in weights(sets[0]).items():
            assert row[value] <= kappa * a / (kappa * a + 1 - a)


# Lives. Kernels in the units of their world.

RELATED = twin.Matrix([{0: 6, 1: 3, 2: 1}, {0: 2, 1: 8}, {0: 1, 1: 1, 2: 2}])
ABSORBING = twin.Matrix([{0: 1, 1: 1, 2: 2}, {1: 5, 2: 1}, {2: 1}])
SMALL = World(2, 3, (1, 2, 3), ABC)
THREE = World(3, 2, (1, 2, 3), ABC[:1])
MOVING = {
    "related": SMALL._replace(kernel=RELATED),
    "absorbing": SMALL._replace(kernel=ABSORBING),
    "ring": SMALL._replace(kernel=twin.Matrix([{1: 1}, {2: 1}, {0: 1}])),
    "shares": SMALL._replace(kernel=twin.Shares([1, 0, 3], 2, [0, 0, 1], slot_length=3)),
    "shares within": SMALL._replace(kernel=twin.Shares([1, 2, 1], 3, [0, 0, 1], slot_length=3)),
    "frequent": World(2, 3, (5, 1), ((0, 1),), twin.Shares([1, 2], 1, [0, 0], slot_length=3)),
    "no kernel": SMALL,
    "three slots": THREE._replace(kernel=RELATED),
    "three slots, absorbing": THREE._replace(kernel=ABSORBING),
}


def law_of(world, kind="visit"):
    kernel = world.kernel or twin.Still()

    def law(value):
        return {u: share for u, share in kernel.law(list(world.units), value, kind).items() if share}

    return law


@pytest.mark.parametrize("world", MOVING.values(), ids=MOVING)
def test_two_visits_are_exact(world):
    assert_exact(moved(world, first_sights(world), law_of(world)), world.l)


@pytest.mark.parametrize("name", ["related", "absorbing", "shares", "ring", "no kernel"])
def test_a_series_of_three_releases_is_exact(name):
    world = MOVING[name]
    lives = first_sights(world)
    for _ in range(2):
        lives = moved(world, lives, law_of(world))
    assert_exact(lives, world.l)


@pytest.mark.parametrize("world", MOVING.values(), ids=MOVING)
def test_corrections_are_exact(world):
    assert_exact(moved(world, first_sights(world), law_of(world, "correction"), "correction"), world.l)


def test_visits_and_corrections_mix():
    world = MOVING["related"]
    lives = moved(world, first_sights(world), law_of(world, "correction"), "correction")
    assert_exact(moved(world, lives, law_of(world)), world.l)


@pytest.mark.parametrize("name", ["related", "absorbing", "ring"])
def test_a_release_without_the_person_is_exact(name):
    """Seen at events 0 and 2: the law of two steps, and one of them unseen."""
    world = MOVING[name]
    law = law_of(world)

    def two(value):
        return merged((a * b, w) for u, a in law(value).items() for w, b in law(u).items())

    assert_exact(moved(world, first_sights(world), two, event=2), world.l)


@pytest.mark.parametrize("kind", ["visit", "correction"])
@pytest.mark.parametrize("name", ["related", "absorbing", "shares"])
def test_going_where_the_kernel_does_not_lead_tells_nothing(name, kind):
    """One in five goes to an unseen value; the sets of the three events say nothing about who did."""
    world, eps = MOVING[name], Fraction(1, 5)

    def law(value):
        if value == UNSEEN:
            return {UNSEEN: Fraction(1)}
        return {u: (1 - eps) * share for u, share in law_of(world, kind)(value).items()} | {UNSEEN: eps}

    lives = first_sights(world)
    for event in (1, 2):
        lives = moved(world, lives, law, kind)
        lost = 1 - (1 - eps) ** event
        for sets, row in value_posteriors(lives, event).items():
            assert row == {v: (1 - lost) * share for v, share in weights(sets[event]).items()} | {UNSEEN: lost}
        for sets, row in value_posteriors(lives, 0).items():
            assert row == weights(sets[0])


def test_a_lost_person_stays_lost():
    world = MOVING["ring"]
    lives = moved(world, first_sights(world), lambda v: {v: Fraction(1)})
    assert all(life.memory.true_slot is None for life in lives)
    back = moved(world, lives, lambda v: {u: Fraction(1, 3) for u in range(3)})
    assert all(life.memory.true_slot is None for life in back)


# Insiders: another person's record is known.


def pair_posteriors(world, draws_of=lambda draws: draws):
    """Posterior of person 1 given both sets and the value of person 2."""

    def sight(draws, values):
        house = world.veil(draws_of(draws))
        return tuple(tuple(house.candidates(person, 0, value)) for person, value in enumerate(values))

    def lives():
        for a, p in world.prior().items():
            for b, q in world.prior().items():
                for weight, sets in twin.worlds(lambda draws, pair=(a, b): sight(draws, pair)):
                    yield p * q * weight, (a, b, sets)

    return posteriors(merged(lives()), lambda life: life[1:], lambda life: life[0])


@pytest.mark.parametrize("name", ["even", "frequent", "whole copies", "three"])
def test_insiders_learn_nothing(name):
    for (_, sets), row in pair_posteriors(FIRST[name]).items():
        assert row == weights(sets[0])


class Impersonal:
    """The planted bug: choices keyed by the value alone."""

    def __init__(self, draws):
        self.draws = draws

    def below(self, purpose, person, word, n):
        return self.draws.below(purpose, 0, word, n)


def test_points_that_are_not_keyed_by_the_person_betray_it():
    found = pair_posteriors(FIRST["even"], Impersonal)
    assert max(row[value] - weights(sets[0])[value] for (_, sets), row in found.items() for value in row) == Fraction(
        1, 2
    )


# Neighbours of the veil that suggest themselves; each exceeds its stated weight.


def test_the_true_value_first_is_not_sorted():
    lives = first_sights(SMALL)

    def as_inserted(life):
        slots, truth = life.slots[0], life.memory.true_slot
        return (slots[truth:] + slots[:truth],)

    assert excess(lives) == 0
    assert excess(lives, as_inserted) == Fraction(1, 2)


def test_a_fresh_veil_for_every_value_adds_up():
    world = MOVING["related"]

    def lives():
        for life, weight in first_sights(world).items():
            for value, share in law_of(world)(life.values[0]).items():
                for chance, memory in twin.worlds(lambda draws, v=value: world.veil(draws).begin(2, 0, v)):
                    yield weight * share * chance, Life((*life.values, value), (*life.slots, memory.slots), memory)

    assert excess(merged(lives())) > Fraction(1, 5)


def test_a_correction_among_decoys_that_may_stay_shows_itself():
    """The truth changes, decoys follow the kernel of visits: who moved is the one."""
    world = SMALL._replace(kernel=twin.Matrix([{0: 9, 1: 1}, {1: 9, 2: 1}, {0: 1, 2: 9}]))
    lives = moved(world, first_sights(world), law_of(world, "correction"), kind="visit")
    assert max(max(row.values()) for row in slot_posteriors(lives).values()) > Fraction(3, 4)
    assert excess(lives) > Fraction(1, 4)


def test_decoys_that_rest_with_the_truth_show_it():
    """The planted bug: decoys move only when the truth does. That some slot moved then betrays that the truth did."""
    world = MOVING["absorbing"]

    def lives():
        for life, weight in moved(world, first_sights(world), law_of(world)).items():
            rests = life.values[0] == life.values[1]
            yield weight, life._replace(slots=(life.slots[0], life.slots[0])) if rests else life

    assert excess(merged(lives())) > 0


def test_a_new_set_for_every_change_tells_who_changes():
    """Without a kernel: an independent set where the value changed says that it changed, hence what it may have been."""
    change = {0: Fraction(9, 10), 1: Fraction(1, 10), 2: Fraction(1, 10)}

    def law(value):
        return {value: 1 - change[value], UNSEEN: change[value]}

    def independent():
        for life, weight in moved(SMALL, first_sights(SMALL), law).items():
            yield weight, (life.values[0], life.sets()[0], life.memory.true_slot is None)

    exposed = posteriors(merged(independent()), lambda life: life[1:], lambda life: life[0])
    assert max(max(row.values()) for row in exposed.values()) == Fraction(9, 10)
    for sets, row in value_posteriors(moved(SMALL, first_sights(SMALL), law), 0).items():
        assert row == weights(sets[0])


# The core itself, over many keys.

ROWS = np.array([[30, 25, 15, 12, 10, 5, 2, 1], [5, 40, 3, 20, 0, 12, 15, 5]], np.uint64)
KEYS, EACH = 2000, 20


def core_house(rng, l, kernel=None):
    shape = {
        "segments": veil.segments_of_counts(ROWS, l=l),
        "permutations": veil.random_permutations(8, count=4, seed=bytes(32)),
    }
    return veil.Veil(key=rng.bytes(32), l=l, **shape, kernel=kernel)


def p_value(tallies):
    """Pearson over (observed, expected) pairs of cells, one degree of freedom less per group of them."""
    cells = [cell for group in tallies for cell in group if cell[1] > 0]
    statistic = sum((observed - expected) ** 2 / expected for observed, expected in cells)
    return stats.chi2.sf(statistic, len(cells) - len(tallies))


def tally(sights, l):
    """Per row and set with enough records: how often each of its values was true, and how often it should be."""
    groups = Counter()
    for *sight, value in sights:
        groups[tuple(sight), value] += 1
    sizes = Counter()
    for (sight, _), count in groups.items():
        sizes[sight] += count
    kept = {sight: n for sight, n in sizes.items() if n >= 10 * l}
    return [[(groups[s, v], float(n * share)) for v, share in weights(s[-1]).items()] for s, n in kept.items()]


@pytest.mark.parametrize("l", [2, 3, 5])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_core_keeps_copies_over_l_under_many_keys(l, wrong):
    """A belief that differs from the prior is noticed, so the statistic can fail."""
    rng = np.random.default_rng(l)
    shares = ROWS / ROWS.sum(axis=1, keepdims=True)
    belief = np.sqrt(shares) / np.sqrt(shares).sum(axis=1, keepdims=True) if wrong else shares
    sights = []
    for _ in range(KEYS):
        rows = rng.integers(0, 2, EACH)
        values = np.array([rng.choice(8, p=belief[row]) for row in rows])
        house = core_house(rng, l)
        found = house.candidates(np.arange(EACH, dtype=np.uint64), rows.astype(np.uint32), values.astype(np.int32))
        sights += zip(rows.tolist(), map(tuple, found.tolist()), values.tolist(), strict=True)
    tallies = tally(sights, l)
    assert len(tallies) > 20
    assert (p_value(tallies) < 1e-6) if wrong else (p_value(tallies) > 1e-3)


def drawn(rng, laws, values):
    """One step of each value by its law."""
    return np.array(
        [rng.choice(list(laws[v]), p=[float(share) for share in laws[v].values()]) for v in values], np.int32
    )


@pytest.mark.parametrize(
    ("kind", "decoys"), [("visit", "visit"), ("correction", "correction"), ("correction", "visit")]
)
def test_the_core_keeps_copies_over_l_along_lives(kind, decoys):
    """Persons move as the first law says and decoys as the second; where these differ, the statistic notices."""
    rng = np.random.default_rng(7)
    counts, one = np.array([[4, 3, 2, 1]], np.uint64), veil.SLOT_LENGTH
    plain = twin.Shares([one * 3 // 4] * 4, one // 2, [0, 0, 1, 1])
    kernel = veil.Kernel.from_stays(
        np.array(plain.stay, np.uint64), within=one // 2, parents=np.array([0, 0, 1, 1], np.uint32)
    )
    shape = {
        "segments": veil.segments_of_counts(counts, l=2),
        "permutations": veil.random_permutations(4, count=2, seed=bytes(32)),
    }
    laws = [plain.law(shape["segments"][0].tolist(), v, kind) for v in range(4)]
    persons, pairs = np.arange(EACH, dtype=np.uint64), []
    for _ in range(KEYS):
        house = veil.Veil(key=rng.bytes(32), l=2, **shape, kernel=kernel)
        values = rng.choice(4, p=counts[0] / 10, size=EACH).astype(np.int32)
        first = house.begin(persons, np.zeros(EACH, np.uint32), values)
        later = drawn(rng, laws, values)
        then = house.step(persons, first.memories, later, kind=decoys)
        sets = [map(tuple, sights.candidates.tolist()) for sights in (first, then)]
        pairs += zip(*sets, values.tolist(), later.tolist(), strict=True)
    earlier = p_value(tally([(b, a, v) for a, b, v, _ in pairs], 2))
    after = p_value(tally([(a, b, w) for a, b, _, w in pairs], 2))
    assert min(earlier, after) > 1e-3 if kind == decoys else max(earlier, after) < 1e-6
