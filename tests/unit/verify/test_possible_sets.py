"""Which candidate sets a cumulative line and a kernel make possible, for files and for running streams."""

import itertools

import numpy as np
import pytest

from reticent._core import verify
from reticent.verify.veil.possible_sets import PossibleSets

SLOT_LENGTH = 1 << 40
# Three values on a cumulative line of two slots; 0 goes to 1, 1 stays or goes to 2, 2 stays.
DOCUMENT = {
    "l": 2,
    "slot_length": SLOT_LENGTH,
    "sensitive": "ill",
    "domain": ["a", "b", "c"],
    "by": [],
    "strata": [[]],
    "segments": [[SLOT_LENGTH, SLOT_LENGTH // 2, SLOT_LENGTH // 2]],
    "permutations": [[0, 1, 2], [1, 0, 2]],
    "kernel": {"starts": [0, 1, 3, 4], "targets": [1, 1, 2, 2], "weights": [1, 1, 1, 1]},
}
STEPS = {(0, 1), (1, 1), (1, 2), (2, 2)}
SETS = [list(codes) for codes in itertools.combinations_with_replacement(range(3), 2)]


def follows(before, after):
    return any(all(pair in STEPS for pair in zip(before, turned, strict=True)) for turned in (after, after[::-1]))


def stream_verifier(possible):
    """The verifier of a running stream, which knows the sets of all strata."""
    memory = possible.person_memory(verify.TrajectoryVerifier)
    for stratum in memory.unknown_strata(np.arange(len(possible.line.strata) + 1, dtype=np.uint32)):
        memory.learn_stratum(stratum, possible.set_hashes(stratum))
    return memory


def violation(memory, person, stratum, event, codes):
    columns = np.array([person], np.uint64), np.array([stratum], np.uint32), np.array([event], np.uint32)
    return memory.find_violation(*columns, np.array([codes], np.uint16))


def lets_follow(memory, stratum, before, after):
    """Whether the verifier of a running stream lets one set follow another, whatever the first set was."""
    memory.load(np.array([1, 9], "<u8").tobytes() + np.array([stratum, 0, 0, *before], "<u2").tobytes())
    return violation(memory, 9, stratum, 1, after) is None


def test_steps_are_those_of_some_matching():
    possible = PossibleSets(DOCUMENT)
    for before, after in itertools.product(SETS, SETS):
        expected = follows(before, after)
        assert possible.can_step(0, before, after) is expected, (before, after)
        assert lets_follow(stream_verifier(possible), 0, before, after) is expected


@pytest.mark.parametrize("density", [0.15, 0.4, 0.8])
def test_steps_of_any_kernel_are_those_of_exhaustive_search(density):
    rng, size, l = np.random.default_rng(5), 8, 4
    open_ = rng.random((size, size)) < density
    rows = [np.flatnonzero(row).tolist() or [v] for v, row in enumerate(open_)]
    kernel = {"starts": np.cumsum([0, *map(len, rows)]).tolist(), "targets": [v for row in rows for v in row]}
    kernel["weights"] = [1] * len(kernel["targets"])
    given = {
        "l": l,
        "domain": [f"{v}" for v in range(size)],
        "segments": [[SLOT_LENGTH // 2] * size],
        "permutations": [list(range(size))],
    }
    possible = PossibleSets(DOCUMENT | given | {"kernel": kernel})
    before, after = (np.sort(rng.integers(0, size, (400, l)), axis=1) for _ in range(2))
    expected = [
        any(all(w in rows[v] for v, w in zip(a, turned, strict=True)) for turned in itertools.permutations(b))
        for a, b in zip(before.tolist(), after.tolist(), strict=True)
    ]
    assert [possible.can_step(0, a, b) for a, b in zip(before.tolist(), after.tolist(), strict=True)] == expected
    memory = stream_verifier(possible)
    assert [lets_follow(memory, 0, a, b) for a, b in zip(before, after, strict=True)] == expected


@pytest.mark.parametrize("within", [0, SLOT_LENGTH // 3, SLOT_LENGTH])
def test_a_kernel_of_stay_probabilities_leads_where_its_definition_says(within):
    # Two strata of six values: one offers all of them, the other three; 0 never stays, 1 never leaves; 5 has no sibling.
    parents, stay = [0, 0, 0, 1, 1, 2], [0, SLOT_LENGTH, SLOT_LENGTH // 2, SLOT_LENGTH // 2, 0, SLOT_LENGTH // 2]
    offered = [[0, 1, 2, 3, 4, 5], [0, 3, 5]]
    segments = [[2 * SLOT_LENGTH // len(some) if v in some else 0 for v in range(6)] for some in offered]
    given = {"domain": list("abcdef"), "by": ["sex"], "strata": [["f"], ["m"]], "permutations": [list(range(6))]}
    kernel = {"stay": stay, "within": within, "parents": parents}
    possible = PossibleSets(DOCUMENT | given | {"segments": segments, "kernel": kernel})

    def may(stratum, old, new):
        others = [v for v in offered[stratum] if v != old]
        near = [v for v in others if parents[v] == parents[old]]
        goals = others if not near else ([*near] if within else []) + (others if within < SLOT_LENGTH else [])
        left = SLOT_LENGTH - stay[old] if goals else 0
        return (old == new and left < SLOT_LENGTH) or (left > 0 and new in goals)

    sets = [list(codes) for codes in itertools.combinations_with_replacement(range(6), 2)]
    cases = [(stratum, a, b) for stratum in (0, 1) for a in sets for b in sets if {*a} <= {*offered[stratum]}]
    expected = [
        any(all(may(stratum, old, new) for old, new in zip(a, turned, strict=True)) for turned in (b, b[::-1]))
        for stratum, a, b in cases
    ]
    assert [possible.can_step(*case) for case in cases] == expected
    memory = possible.person_memory(verify.TrajectoryVerifier)
    assert [lets_follow(memory, *case) for case in cases] == expected
    assert 0 < expected.count(False) < len(cases)


@pytest.mark.parametrize("bad", [{"stay": [0]}, {"parents": [-1, 0, 0]}, {"within": "x"}])
def test_a_kernel_of_stay_probabilities_that_does_not_fit_is_refused(bad):
    kernel = {"stay": [0, 0, 0], "within": 0, "parents": [0, 0, 0]}
    PossibleSets(DOCUMENT | {"kernel": kernel})
    with pytest.raises(ValueError):
        PossibleSets(DOCUMENT | {"kernel": kernel | bad})


def test_without_a_kernel_nothing_moves():
    possible = PossibleSets(DOCUMENT | {"kernel": None})
    for before, after in itertools.product(SETS, SETS):
        assert possible.can_step(0, before, after) is (before == after)
        assert lets_follow(stream_verifier(possible), 0, before, after) is (before == after)


def test_sets_are_those_of_the_cumulative_line():
    possible = PossibleSets(DOCUMENT)
    # In the first permutation 0 fills the first slot; in the second, half of it belongs to 1.
    given = [[0, 1], [0, 2], [1, 0], [1, 2]]
    known = {tuple(sorted(codes)) for codes in possible.line.sets(0).tolist()}
    for codes in SETS:
        assert (violation(stream_verifier(possible), 9, 0, 0, codes) is None) is (tuple(codes) in known)
        assert possible.count_impossible_sets(np.array([codes]), np.array([0])) == (tuple(codes) not in known)
    assert known <= {tuple(sorted(codes)) for codes in given}


@pytest.mark.parametrize("bad", [{"starts": [0, 1]}, {"weights": [1, 1, 0, 1]}, {"weights": [1]}])
def test_a_malformed_kernel_is_refused(bad):
    with pytest.raises(ValueError, match="kernel"):
        PossibleSets(DOCUMENT | {"kernel": DOCUMENT["kernel"] | bad})


class ReferenceVerifier:
    """The verifier of a running stream in plain Python."""

    def __init__(self, possible):
        self.sets = {tuple(codes) for codes in possible.line.sets(0).tolist()}
        self.last = {}

    def lets(self, person, stratum, event, codes):
        if person not in self.last:
            holds = event == 0 and tuple(codes) in self.sets
        else:
            old_stratum, old_event, before = self.last[person]
            holds = stratum == old_stratum and event == old_event + 1 and follows(before, codes)
        self.last[person] = stratum, event, codes
        return holds and stratum == 0 and list(codes) == sorted(codes)


def test_a_stream_is_verified_as_by_the_reference_implementation():
    rng, possible = np.random.default_rng(8), PossibleSets(DOCUMENT)
    refused = 0
    for _ in range(400):
        reference, records, holds = ReferenceVerifier(possible), [], True
        while holds and len(records) < 8:
            person = int(rng.integers(3))
            stratum, event, before = reference.last.get(person, (0, -1, None))
            ways = [
                codes
                for codes in SETS
                if (tuple(codes) in reference.sets if before is None else follows(before, codes))
            ]
            codes = (SETS if rng.random() < 0.1 else ways)[rng.integers(len(ways))]
            event += 1 + int(rng.random() < 0.03)
            records.append((person, stratum + int(rng.random() < 0.03), event, codes))
            holds = reference.lets(*records[-1])
        persons, strata, events, sets = zip(*records, strict=True)
        columns = np.array(persons, np.uint64), np.array(strata, np.uint32), np.array(events, np.uint32)
        word = stream_verifier(possible).find_violation(*columns, np.array(sets, np.uint16))
        assert (word is None) is holds, records
        one_by_one = stream_verifier(possible)
        assert [violation(one_by_one, *record) for record in records] == [None] * (len(records) - 1) + [word]
        refused += not holds
    assert 40 < refused < 360


def test_a_memory_of_another_stream_is_refused():
    possible = PossibleSets(DOCUMENT)
    memory = stream_verifier(possible)
    assert violation(memory, 9, 0, 0, possible.line.sets(0)[0].tolist()) is None
    state = memory.to_bytes()
    assert len(memory) == 1
    for corrupt in (state[:-1], b"", state + b"x", state[:16] + b"\x05" + state[17:]):
        with pytest.raises(ValueError, match="memory"):
            stream_verifier(possible).load(corrupt)
    with pytest.raises(ValueError, match="kernel"):
        verify.TrajectoryVerifier(values=3, strata=1, factors=possible.factors, starts=[0, 1], targets=[1])
