"""What a line and a kernel make possible, as the judge of files and the judge of running streams see it."""

import itertools

import numpy as np
import pytest

from reticent._core import verify
from reticent.verify.veil.possible_sets import PossibleSets

ONE = 1 << 40
# Three values on a line of length two; 0 goes to 1, 1 stays or goes to 2, 2 stays.
DOCUMENT = {
    "l": 2,
    "slot_length": ONE,
    "sensitive": "ill",
    "domain": ["a", "b", "c"],
    "by": [],
    "strata": [[]],
    "segments": [[ONE, ONE // 2, ONE // 2]],
    "permutations": [[0, 1, 2], [1, 0, 2]],
    "kernel": {"starts": [0, 1, 3, 4], "targets": [1, 1, 2, 2], "weights": [1, 1, 1, 1]},
}
STEPS = {(0, 1), (1, 1), (1, 2), (2, 2)}
SETS = [list(codes) for codes in itertools.combinations_with_replacement(range(3), 2)]


def follows(before, after):
    return any(all(pair in STEPS for pair in zip(before, turned, strict=True)) for turned in (after, after[::-1]))


def followed(possible):
    """The judge of a running stream, who knows the sets of all rows."""
    memory = possible.person_memory(verify.TrajectoryVerifier)
    for row in memory.unknown_strata(np.arange(len(possible.line.strata) + 1, dtype=np.uint32)):
        memory.learn_stratum(row, possible.set_hashes(row))
    return memory


def offence(memory, person, row, event, codes):
    columns = np.array([person], np.uint64), np.array([row], np.uint32), np.array([event], np.uint32)
    return memory.find_violation(*columns, np.array([codes], np.uint16))


def lets_follow(memory, row, before, after):
    """Whether the judge of a running stream lets one set follow another, whatever set came first."""
    memory.load(np.array([1, 9], "<u8").tobytes() + np.array([row, 0, 0, *before], "<u2").tobytes())
    return offence(memory, 9, row, 1, after) is None


def test_steps_are_those_of_some_matching():
    possible = PossibleSets(DOCUMENT)
    for before, after in itertools.product(SETS, SETS):
        expected = follows(before, after)
        assert possible.can_step(0, before, after) is expected, (before, after)
        assert lets_follow(followed(possible), 0, before, after) is expected


@pytest.mark.parametrize("density", [0.15, 0.4, 0.8])
def test_any_kernel_is_followed_as_by_trying_all_ways(density):
    rng, size, l = np.random.default_rng(5), 8, 4
    open_ = rng.random((size, size)) < density
    rows = [np.flatnonzero(row).tolist() or [v] for v, row in enumerate(open_)]
    kernel = {"starts": np.cumsum([0, *map(len, rows)]).tolist(), "targets": [v for row in rows for v in row]}
    kernel["weights"] = [1] * len(kernel["targets"])
    given = {
        "l": l,
        "domain": [f"{v}" for v in range(size)],
        "segments": [[ONE // 2] * size],
        "permutations": [list(range(size))],
    }
    possible = PossibleSets(DOCUMENT | given | {"kernel": kernel})
    before, after = (np.sort(rng.integers(0, size, (400, l)), axis=1) for _ in range(2))
    expected = [
        any(all(w in rows[v] for v, w in zip(a, turned, strict=True)) for turned in itertools.permutations(b))
        for a, b in zip(before.tolist(), after.tolist(), strict=True)
    ]
    assert [possible.can_step(0, a, b) for a, b in zip(before.tolist(), after.tolist(), strict=True)] == expected
    memory = followed(possible)
    assert [lets_follow(memory, 0, a, b) for a, b in zip(before, after, strict=True)] == expected


@pytest.mark.parametrize("within", [0, ONE // 3, ONE])
def test_a_kernel_of_few_numbers_leads_where_its_definition_says(within):
    # Two rows of six values: one offers all of them, the other three; 0 never stays, 1 never leaves; 5 has no sibling.
    parents, stay = [0, 0, 0, 1, 1, 2], [0, ONE, ONE // 2, ONE // 2, 0, ONE // 2]
    offered = [[0, 1, 2, 3, 4, 5], [0, 3, 5]]
    stretches = [[2 * ONE // len(some) if v in some else 0 for v in range(6)] for some in offered]
    given = {"domain": list("abcdef"), "by": ["sex"], "strata": [["f"], ["m"]], "permutations": [list(range(6))]}
    kernel = {"stay": stay, "within": within, "parents": parents}
    possible = PossibleSets(DOCUMENT | given | {"segments": stretches, "kernel": kernel})

    def may(row, old, new):
        others = [v for v in offered[row] if v != old]
        near = [v for v in others if parents[v] == parents[old]]
        goals = others if not near else ([*near] if within else []) + (others if within < ONE else [])
        left = ONE - stay[old] if goals else 0
        return (old == new and left < ONE) or (left > 0 and new in goals)

    sets = [list(codes) for codes in itertools.combinations_with_replacement(range(6), 2)]
    cases = [(row, a, b) for row in (0, 1) for a in sets for b in sets if {*a} <= {*offered[row]}]
    expected = [
        any(all(may(row, old, new) for old, new in zip(a, turned, strict=True)) for turned in (b, b[::-1]))
        for row, a, b in cases
    ]
    assert [possible.can_step(*case) for case in cases] == expected
    memory = possible.person_memory(verify.TrajectoryVerifier)
    assert [lets_follow(memory, *case) for case in cases] == expected
    assert 0 < expected.count(False) < len(cases)


@pytest.mark.parametrize("bad", [{"stay": [0]}, {"parents": [-1, 0, 0]}, {"within": "x"}])
def test_a_kernel_of_few_numbers_that_does_not_fit_is_refused(bad):
    kernel = {"stay": [0, 0, 0], "within": 0, "parents": [0, 0, 0]}
    PossibleSets(DOCUMENT | {"kernel": kernel})
    with pytest.raises(ValueError):
        PossibleSets(DOCUMENT | {"kernel": kernel | bad})


def test_without_a_kernel_nothing_moves():
    possible = PossibleSets(DOCUMENT | {"kernel": None})
    for before, after in itertools.product(SETS, SETS):
        assert possible.can_step(0, before, after) is (before == after)
        assert lets_follow(followed(possible), 0, before, after) is (before == after)


def test_sets_are_those_of_the_line():
    possible = PossibleSets(DOCUMENT)
    # In the first order 0 fills the first slot; in the second, half of it is 1's.
    given = [[0, 1], [0, 2], [1, 0], [1, 2]]
    known = {tuple(sorted(codes)) for codes in possible.line.sets(0).tolist()}
    for codes in SETS:
        assert (offence(followed(possible), 9, 0, 0, codes) is None) is (tuple(codes) in known)
        assert possible.count_impossible_sets(np.array([codes]), np.array([0])) == (tuple(codes) not in known)
    assert known <= {tuple(sorted(codes)) for codes in given}


@pytest.mark.parametrize("bad", [{"starts": [0, 1]}, {"weights": [1, 1, 0, 1]}, {"weights": [1]}])
def test_a_kernel_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="kernel"):
        PossibleSets(DOCUMENT | {"kernel": DOCUMENT["kernel"] | bad})


class Twin:
    """The judge of a running stream, said plainly."""

    def __init__(self, possible):
        self.sets = {tuple(codes) for codes in possible.line.sets(0).tolist()}
        self.last = {}

    def lets(self, person, row, event, codes):
        if person not in self.last:
            holds = event == 0 and tuple(codes) in self.sets
        else:
            old_row, old_event, before = self.last[person]
            holds = row == old_row and event == old_event + 1 and follows(before, codes)
        self.last[person] = row, event, codes
        return holds and row == 0 and list(codes) == sorted(codes)


def test_a_stream_is_judged_as_record_by_record_in_plain_words():
    rng, possible = np.random.default_rng(8), PossibleSets(DOCUMENT)
    refused = 0
    for _ in range(400):
        twin, records, holds = Twin(possible), [], True
        while holds and len(records) < 8:
            person = int(rng.integers(3))
            row, event, before = twin.last.get(person, (0, -1, None))
            ways = [
                codes for codes in SETS if (tuple(codes) in twin.sets if before is None else follows(before, codes))
            ]
            codes = (SETS if rng.random() < 0.1 else ways)[rng.integers(len(ways))]
            event += 1 + int(rng.random() < 0.03)
            records.append((person, row + int(rng.random() < 0.03), event, codes))
            holds = twin.lets(*records[-1])
        persons, rows, events, sets = zip(*records, strict=True)
        columns = np.array(persons, np.uint64), np.array(rows, np.uint32), np.array(events, np.uint32)
        word = followed(possible).find_violation(*columns, np.array(sets, np.uint16))
        assert (word is None) is holds, records
        one_by_one = followed(possible)
        assert [offence(one_by_one, *record) for record in records] == [None] * (len(records) - 1) + [word]
        refused += not holds
    assert 40 < refused < 360


def test_a_memory_of_another_stream_is_refused():
    possible = PossibleSets(DOCUMENT)
    memory = followed(possible)
    assert offence(memory, 9, 0, 0, possible.line.sets(0)[0].tolist()) is None
    state = memory.to_bytes()
    assert len(memory) == 1
    for damaged in (state[:-1], b"", state + b"x", state[:16] + b"\x05" + state[17:]):
        with pytest.raises(ValueError, match="memory"):
            followed(possible).load(damaged)
    with pytest.raises(ValueError, match="kernel"):
        verify.TrajectoryVerifier(values=3, strata=1, factors=possible.factors, starts=[0, 1], targets=[1])
