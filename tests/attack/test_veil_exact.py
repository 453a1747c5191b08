"""An attacker who knows everything but the key, against the veil: exact, by enumeration of every choice.

The keyed function is replaced by all answers that a random function can give, units are tiny, probabilities are fractions. Every
slot must keep exactly 1/l and every value exactly copies/l; obvious variants of the veil fail the same test.
"""

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import veil_reference as reference
from scipy import stats

from reticent._core import veil

UNSEEN = -1


class World(NamedTuple):
    """The length of a slot, the segments of the one stratum, value orders, kernel."""

    l: int
    slot_length: int
    units: tuple
    value_orders: tuple
    kernel: object = None

    def veil(self, draws):
        return reference.Veil(draws, self.l, [list(self.units)], self.value_orders, self.kernel, self.slot_length)

    def prior(self):
        return {v: Fraction(units, self.l * self.slot_length) for v, units in enumerate(self.units) if units}


def merged(pairs):
    """Probabilities by outcome."""
    law = defaultdict(Fraction)
    for weight, outcome in pairs:
        law[outcome] += weight
    return law


class History(NamedTuple):
    """Values of a person, the slots at each event, the memory after the last."""

    values: tuple
    slots: tuple
    memory: reference.Memory

    def sets(self):
        return tuple(tuple(sorted(slots)) for slots in self.slots)


def first_events(world, prior=None, person=1):
    prior = prior or world.prior()

    def histories():
        for value, share in prior.items():
            for weight, memory in reference.worlds(lambda draws, v=value: world.veil(draws).begin(person, 0, v)):
                yield share * weight, History((value,), (memory.slots,), memory)

    return merged(histories())


def moved(world, histories, law, kind="visit", event=None, person=1):
    """The next event of every history; `law(v)` is where the attacker believes a person goes."""

    def step(history, value, draws):
        return world.veil(draws).step(person, history.memory, value, kind, event)

    def later():
        for history, weight in histories.items():
            for value, share in law(history.values[-1]).items():
                for chance, memory in reference.worlds(lambda draws, a=history, b=value: step(a, b, draws)):
                    after = History((*history.values, value), (*history.slots, memory.slots), memory)
                    yield weight * share * chance, after

    return merged(later())


def posteriors(histories, seen, secret):
    """For each thing seen, the posterior of the secret."""
    joint = defaultdict(lambda: defaultdict(Fraction))
    for history, weight in histories.items():
        joint[seen(history)][secret(history)] += weight
    return {event: {s: w / sum(shares.values()) for s, w in shares.items()} for event, shares in joint.items()}


def slot_posteriors(histories):
    """What an attacker knows of the true slot who even sees which slot is which over the whole history."""
    return posteriors(histories, lambda history: history.slots, lambda history: history.memory.true_slot)


def value_posteriors(histories, event, seen=History.sets):
    return posteriors(histories, seen, lambda history: history.values[event])


def weights(candidates):
    return {value: Fraction(copies, len(candidates)) for value, copies in Counter(candidates).items()}


def assert_exact(histories, l):
    assert sum(histories.values()) == 1
    for row in slot_posteriors(histories).values():
        assert row == dict.fromkeys(range(l), Fraction(1, l))
    for event in range(len(next(iter(histories)).values)):
        for sets, row in value_posteriors(histories, event).items():
            assert row == weights(sets[event])


def excess(histories, seen=History.sets):
    """By how much the best attacker beats the stated weight, over all events and sets."""

    def beyond(event, sets, row):
        stated = weights(sets[event])
        return max(share - stated.get(value, 0) for value, share in row.items())

    events = range(len(next(iter(histories)).values))
    return max(beyond(e, sets, row) for e in events for sets, row in value_posteriors(histories, e, seen).items())


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
    histories = first_events(world)
    assert_exact(histories, world.l)
    assert all(history.slots[0][history.memory.true_slot] == history.values[0] for history in histories)


def test_the_worked_example():
    """The example of docs/veil.md: segments 1, 2, 3 in one value order."""
    histories = first_events(World(2, 3, (1, 2, 3), ((0, 1, 2),)))
    shown = posteriors(histories, lambda history: history.values[0], History.sets)
    assert shown[1] == {((1, 2),): 1}
    assert shown[2] == {((0, 2),): Fraction(1, 3), ((1, 2),): Fraction(2, 3)}
    assert value_posteriors(histories, 0)[((1, 2),)] == {1: Fraction(1, 2), 2: Fraction(1, 2)}


@pytest.mark.parametrize("world", FIRST.values(), ids=FIRST)
def test_copies_of_a_value_are_its_share_rounded_down_or_up(world):
    for history in first_events(world):
        copies = Counter(history.slots[0])
        for value, units in enumerate(world.units):
            assert copies[value] in {units // world.slot_length, -(-units // world.slot_length)}


def test_random_priors_are_exact():
    rng = np.random.default_rng(11)
    for _ in range(60):
        l, length, size = int(rng.integers(2, 5)), int(rng.integers(2, 6)), int(rng.integers(2, 6))
        cuts = np.sort(rng.integers(0, l * length + 1, size - 1)).tolist()
        units = tuple(b - a for a, b in zip([0, *cuts], [*cuts, l * length], strict=True))
        value_orders = tuple(tuple(rng.permutation(size).tolist()) for _ in range(2))
        assert_exact(first_events(World(l, length, units, value_orders)), l)


@pytest.mark.parametrize("omission_rate", [Fraction(1, 10), Fraction(3, 10)])
def test_an_unseen_value_stays_at_its_own_share(omission_rate):
    """An outbreak of something the prior does not know: the sets disclose nothing about who has it."""
    for world in FIRST.values():
        prior = {v: (1 - omission_rate) * share for v, share in world.prior().items()} | {UNSEEN: omission_rate}
        histories = first_events(world, prior)
        for sets, row in value_posteriors(histories, 0).items():
            known = {v: (1 - omission_rate) * share for v, share in weights(sets[0]).items()}
            assert row == known | {UNSEEN: omission_rate}


def test_smoothing_an_unseen_value_would_expose_it():
    """The planted bug: a segment of one unit for a value that three in ten have."""
    world = World(2, 50, (1, 49, 50), ABC)
    prior = {0: Fraction(3, 10), 1: Fraction(7, 20), 2: Fraction(7, 20)}
    assert max(row.get(0, 0) for row in value_posteriors(first_events(world, prior), 0).values()) > Fraction(9, 10)


def test_a_better_informed_attacker_gains_the_odds_ratio_and_no_more():
    """At most r a / (r a + 1 - a), where r is the odds ratio of the belief to the prior between candidates."""
    world = FIRST["three"]
    belief = {0: Fraction(1, 6), 1: Fraction(1, 6), 2: Fraction(1, 3), 3: Fraction(1, 3)}
    ratios = {v: belief[v] / share for v, share in world.prior().items()}
    for sets, row in value_posteriors(first_events(world, belief), 0).items():
        offered = [ratios[v] for v in set(sets[0])]
        odds_ratio = max(offered) / min(offered)
        for value, a in weights(sets[0]).items():
            assert row[value] <= odds_ratio * a / (odds_ratio * a + 1 - a)


# Histories. Kernels in the units of their world.

RELATED = reference.Matrix([{0: 6, 1: 3, 2: 1}, {0: 2, 1: 8}, {0: 1, 1: 1, 2: 2}])
ABSORBING = reference.Matrix([{0: 1, 1: 1, 2: 2}, {1: 5, 2: 1}, {2: 1}])
SMALL = World(2, 3, (1, 2, 3), ABC)
THREE = World(3, 2, (1, 2, 3), ABC[:1])
MOVING = {
    "related": SMALL._replace(kernel=RELATED),
    "absorbing": SMALL._replace(kernel=ABSORBING),
    "ring": SMALL._replace(kernel=reference.Matrix([{1: 1}, {2: 1}, {0: 1}])),
    "shares": SMALL._replace(kernel=reference.Shares([1, 0, 3], 2, [0, 0, 1], slot_length=3)),
    "shares within": SMALL._replace(kernel=reference.Shares([1, 2, 1], 3, [0, 0, 1], slot_length=3)),
    "frequent": World(2, 3, (5, 1), ((0, 1),), reference.Shares([1, 2], 1, [0, 0], slot_length=3)),
    "no kernel": SMALL,
    "three slots": THREE._replace(kernel=RELATED),
    "three slots, absorbing": THREE._replace(kernel=ABSORBING),
}


def law_of(world, kind="visit"):
    kernel = world.kernel or reference.Still()

    def law(value):
        return {u: share for u, share in kernel.law(list(world.units), value, kind).items() if share}

    return law


@pytest.mark.parametrize("world", MOVING.values(), ids=MOVING)
def test_two_visits_are_exact(world):
    assert_exact(moved(world, first_events(world), law_of(world)), world.l)


@pytest.mark.parametrize("name", ["related", "absorbing", "shares", "ring", "no kernel"])
def test_a_series_of_three_releases_is_exact(name):
    world = MOVING[name]
    histories = first_events(world)
    for _ in range(2):
        histories = moved(world, histories, law_of(world))
    assert_exact(histories, world.l)


@pytest.mark.parametrize("world", MOVING.values(), ids=MOVING)
def test_corrections_are_exact(world):
    assert_exact(moved(world, first_events(world), law_of(world, "correction"), "correction"), world.l)


def test_visits_and_corrections_mix():
    world = MOVING["related"]
    histories = moved(world, first_events(world), law_of(world, "correction"), "correction")
    assert_exact(moved(world, histories, law_of(world)), world.l)


@pytest.mark.parametrize("name", ["related", "absorbing", "ring"])
def test_a_release_without_the_person_is_exact(name):
    """Seen at events 0 and 2: the law of two steps, and one of them unseen."""
    world = MOVING[name]
    law = law_of(world)

    def two(value):
        return merged((a * b, w) for u, a in law(value).items() for w, b in law(u).items())

    assert_exact(moved(world, first_events(world), two, event=2), world.l)


@pytest.mark.parametrize("kind", ["visit", "correction"])
@pytest.mark.parametrize("name", ["related", "absorbing", "shares"])
def test_a_step_outside_the_kernel_discloses_nothing(name, kind):
    """One in five goes to an unseen value; the sets of the three events say nothing about who did."""
    world, eps = MOVING[name], Fraction(1, 5)

    def law(value):
        if value == UNSEEN:
            return {UNSEEN: Fraction(1)}
        return {u: (1 - eps) * share for u, share in law_of(world, kind)(value).items()} | {UNSEEN: eps}

    histories = first_events(world)
    for event in (1, 2):
        histories = moved(world, histories, law, kind)
        lost = 1 - (1 - eps) ** event
        for sets, row in value_posteriors(histories, event).items():
            assert row == {v: (1 - lost) * share for v, share in weights(sets[event]).items()} | {UNSEEN: lost}
        for sets, row in value_posteriors(histories, 0).items():
            assert row == weights(sets[0])


def test_a_lost_person_stays_lost():
    world = MOVING["ring"]
    histories = moved(world, first_events(world), lambda v: {v: Fraction(1)})
    assert all(history.memory.true_slot is None for history in histories)
    back = moved(world, histories, lambda v: {u: Fraction(1, 3) for u in range(3)})
    assert all(history.memory.true_slot is None for history in back)


# Insiders: another person's record is known.


def pair_posteriors(world, draws_of=lambda draws: draws):
    """Posterior of person 1 given both sets and the value of person 2."""

    def publish(draws, values):
        mechanism = world.veil(draws_of(draws))
        return tuple(tuple(mechanism.candidates(person, 0, value)) for person, value in enumerate(values))

    def histories():
        for a, p in world.prior().items():
            for b, q in world.prior().items():
                for weight, sets in reference.worlds(lambda draws, pair=(a, b): publish(draws, pair)):
                    yield p * q * weight, (a, b, sets)

    return posteriors(merged(histories()), lambda history: history[1:], lambda history: history[0])


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


# Obvious variants of the veil; each exceeds its stated weight.


def test_the_true_value_first_is_not_sorted():
    histories = first_events(SMALL)

    def as_inserted(history):
        slots, true_slot = history.slots[0], history.memory.true_slot
        return (slots[true_slot:] + slots[:true_slot],)

    assert excess(histories) == 0
    assert excess(histories, as_inserted) == Fraction(1, 2)


def test_a_fresh_veil_for_every_value_adds_up():
    world = MOVING["related"]

    def histories():
        for history, weight in first_events(world).items():
            for value, share in law_of(world)(history.values[0]).items():
                for chance, memory in reference.worlds(lambda draws, v=value: world.veil(draws).begin(2, 0, v)):
                    yield (
                        weight * share * chance,
                        History((*history.values, value), (*history.slots, memory.slots), memory),
                    )

    assert excess(merged(histories())) > Fraction(1, 5)


def test_a_correction_among_false_candidates_that_may_stay_is_exposed():
    """The true value changes and false candidates follow the kernel of visits: the candidate that moved is the true one."""
    world = SMALL._replace(kernel=reference.Matrix([{0: 9, 1: 1}, {1: 9, 2: 1}, {0: 1, 2: 9}]))
    histories = moved(world, first_events(world), law_of(world, "correction"), kind="visit")
    assert max(max(row.values()) for row in slot_posteriors(histories).values()) > Fraction(3, 4)
    assert excess(histories) > Fraction(1, 4)


def test_false_candidates_that_stay_with_the_true_value_expose_it():
    """The planted bug: false candidates move only when the true value does. If any slot moves, the true value did."""
    world = MOVING["absorbing"]

    def histories():
        for history, weight in moved(world, first_events(world), law_of(world)).items():
            stays = history.values[0] == history.values[1]
            yield weight, history._replace(slots=(history.slots[0], history.slots[0])) if stays else history

    assert excess(merged(histories())) > 0


def test_a_new_set_for_every_change_discloses_who_changes():
    """Without a kernel: an independent set where the value changed says that it changed, hence what it may have been."""
    change = {0: Fraction(9, 10), 1: Fraction(1, 10), 2: Fraction(1, 10)}

    def law(value):
        return {value: 1 - change[value], UNSEEN: change[value]}

    def independent():
        for history, weight in moved(SMALL, first_events(SMALL), law).items():
            yield weight, (history.values[0], history.sets()[0], history.memory.true_slot is None)

    exposed = posteriors(merged(independent()), lambda history: history[1:], lambda history: history[0])
    assert max(max(row.values()) for row in exposed.values()) == Fraction(9, 10)
    for sets, row in value_posteriors(moved(SMALL, first_events(SMALL), law), 0).items():
        assert row == weights(sets[0])


# The core itself, over many keys.

STRATA = np.array([[30, 25, 15, 12, 10, 5, 2, 1], [5, 40, 3, 20, 0, 12, 15, 5]], np.uint64)
KEYS, EACH = 2000, 20


def core_veil(rng, l, kernel=None):
    shape = {
        "segments": veil.segments_of_counts(STRATA, l=l),
        "permutations": veil.random_permutations(8, count=4, seed=bytes(32)),
    }
    return veil.Veil(key=rng.bytes(32), l=l, **shape, kernel=kernel)


def p_value(tallies):
    """Pearson over (observed, expected) pairs of cells, one degree of freedom less per group of them."""
    cells = [cell for group in tallies for cell in group if cell[1] > 0]
    statistic = sum((observed - expected) ** 2 / expected for observed, expected in cells)
    return stats.chi2.sf(statistic, len(cells) - len(tallies))


def tally(events, l):
    """Per stratum and set with enough records: how often each of its values was true, and how often it should be."""
    groups = Counter()
    for *event, value in events:
        groups[tuple(event), value] += 1
    sizes = Counter()
    for (event, _), count in groups.items():
        sizes[event] += count
    frequent = {event: n for event, n in sizes.items() if n >= 10 * l}
    return [[(groups[e, v], float(n * share)) for v, share in weights(e[-1]).items()] for e, n in frequent.items()]


@pytest.mark.parametrize("l", [2, 3, 5])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_core_keeps_copies_over_l_under_many_keys(l, wrong):
    """A belief that differs from the prior is noticed, so the statistic can fail."""
    rng = np.random.default_rng(l)
    shares = STRATA / STRATA.sum(axis=1, keepdims=True)
    belief = np.sqrt(shares) / np.sqrt(shares).sum(axis=1, keepdims=True) if wrong else shares
    events = []
    for _ in range(KEYS):
        strata = rng.integers(0, 2, EACH)
        values = np.array([rng.choice(8, p=belief[stratum]) for stratum in strata])
        mechanism, persons = core_veil(rng, l), np.arange(EACH, dtype=np.uint64)
        sets = mechanism.candidates(persons, strata.astype(np.uint32), values.astype(np.int32))
        events += zip(strata.tolist(), map(tuple, sets.tolist()), values.tolist(), strict=True)
    tallies = tally(events, l)
    assert len(tallies) > 20
    assert (p_value(tallies) < 1e-6) if wrong else (p_value(tallies) > 1e-3)


def drawn(rng, laws, values):
    """One step of each value by its law."""
    return np.array(
        [rng.choice(list(laws[v]), p=[float(share) for share in laws[v].values()]) for v in values], np.int32
    )


@pytest.mark.parametrize(
    ("kind", "false_kind"), [("visit", "visit"), ("correction", "correction"), ("correction", "visit")]
)
def test_the_core_keeps_copies_over_l_over_several_events(kind, false_kind):
    """True values move by the first kind of law and false candidates by the second; the statistic notices a difference."""
    rng = np.random.default_rng(7)
    counts, length = np.array([[4, 3, 2, 1]], np.uint64), veil.SLOT_LENGTH
    plain = reference.Shares([length * 3 // 4] * 4, length // 2, [0, 0, 1, 1])
    kernel = veil.Kernel.from_stays(
        np.array(plain.stay, np.uint64), within=length // 2, parents=np.array([0, 0, 1, 1], np.uint32)
    )
    shape = {
        "segments": veil.segments_of_counts(counts, l=2),
        "permutations": veil.random_permutations(4, count=2, seed=bytes(32)),
    }
    laws = [plain.law(shape["segments"][0].tolist(), v, kind) for v in range(4)]
    persons, pairs = np.arange(EACH, dtype=np.uint64), []
    for _ in range(KEYS):
        mechanism = veil.Veil(key=rng.bytes(32), l=2, **shape, kernel=kernel)
        values = rng.choice(4, p=counts[0] / 10, size=EACH).astype(np.int32)
        first = mechanism.begin(persons, np.zeros(EACH, np.uint32), values)
        later = drawn(rng, laws, values)
        then = mechanism.step(persons, first.memories, later, kind=false_kind)
        sets = [map(tuple, events.candidates.tolist()) for events in (first, then)]
        pairs += zip(*sets, values.tolist(), later.tolist(), strict=True)
    earlier = p_value(tally([(b, a, v) for a, b, v, _ in pairs], 2))
    after = p_value(tally([(a, b, w) for a, b, _, w in pairs], 2))
    assert min(earlier, after) > 1e-3 if kind == false_kind else max(earlier, after) < 1e-6
