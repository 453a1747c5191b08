"""The core's veil equals the reference implementation bit for bit, and refuses what does not fit."""

from fractions import Fraction

import numpy as np
import pytest
import veil_reference as reference
from hypothesis import example, given
from hypothesis import strategies as st

from reticent._core import veil

KEY = bytes(range(32))
SEED = bytes(32)
ONE = veil.SLOT_LENGTH


def array(items, dtype):
    return np.array(list(items), dtype=dtype)


def u64(items):
    return array(items, np.uint64)


def u32(items):
    return array(items, np.uint32)


def i32(items):
    return array(items, np.int32)


counts = st.lists(st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 2**64 - 1)), min_size=1, max_size=12)


@given(counts.filter(any), st.integers(2, 254))
@example([1, 1, 1], 2)
@example([1, 0, 2**64 - 1], 5)
def test_segments_equal_the_reference_and_sum_exactly(counts, l):
    units = veil.segments_of_counts(u64([counts]).reshape(1, -1), l=l)[0].tolist()
    assert units == reference.segments(counts, l)
    assert sum(units) == l * ONE
    assert all(not units[v] for v, count in enumerate(counts) if not count)
    assert all(abs(units[v] - Fraction(count * l * ONE, sum(counts))) < 1 for v, count in enumerate(counts))


def test_a_stratum_without_counts_is_refused():
    with pytest.raises(ValueError, match="no count"):
        veil.segments_of_counts(u64([1, 2, 0, 0]).reshape(2, 2), l=2)


def test_random_permutations_equal_the_reference():
    assert veil.random_permutations(139, count=7, seed=KEY).tolist() == reference.random_permutations(139, 7, KEY)


LEVELS = [[0, 0, 1, 1, 2, 2, 3, 3, 3], [0, 0, 1, 1, 1, 1, 0, 0, 0], [0] * 9]


def test_hierarchy_permutations_equal_the_reference():
    core = veil.hierarchy_permutations(array(LEVELS, np.uint32), count=64, seed=KEY)
    assert core.tolist() == reference.hierarchy_permutations(LEVELS, 64, KEY)
    assert len({tuple(order) for order in core.tolist()}) > 50


def test_a_node_under_two_parents_is_refused():
    with pytest.raises(ValueError, match="two parents"):
        veil.hierarchy_permutations(array([[0, 0, 1], [0, 1, 1]], np.uint32), count=1, seed=KEY)


@st.composite
def parameter_sets(draw):
    """Parameters for the core and the reference: strata with frequent and unseen values, a kernel or none."""
    size, l = draw(st.integers(2, 9)), draw(st.integers(2, 6))
    small = st.lists(st.integers(0, 5) | st.just(40), min_size=size, max_size=size).filter(any)
    rows = [reference.segments(row, l) for row in draw(st.lists(small, min_size=1, max_size=3))]
    permutations = reference.random_permutations(size, draw(st.integers(1, 4)), SEED)
    return l, rows, permutations, draw(kernels(size))


@st.composite
def kernels(draw, size):
    units = st.sampled_from([0, 1, ONE // 3, ONE // 2, ONE - 1, ONE])
    sort = draw(st.sampled_from(["still", "shares", "matrix"]))
    if sort == "shares":
        stay = draw(st.lists(units, min_size=size, max_size=size))
        parents = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        return reference.Shares(stay, draw(units), parents)
    if sort == "matrix":
        row = st.dictionaries(st.integers(0, size - 1), st.integers(1, 9), max_size=size)
        return reference.Matrix(draw(st.lists(row, min_size=size, max_size=size)))
    return reference.Still()


def core_kernel(kernel):
    if isinstance(kernel, reference.Shares):
        return veil.Kernel.from_stays(u64(kernel.stay), within=kernel.within, parents=u32(kernel.parents))
    if isinstance(kernel, reference.Matrix):
        cells = [cell for row in kernel.rows for cell in sorted(row.items())]
        starts = np.cumsum([0, *map(len, kernel.rows)])
        return veil.Kernel.from_matrix(u64(starts), array([u for u, _ in cells], np.uint16), u64([w for _, w in cells]))
    return None


def both(parameters, key=KEY):
    l, rows, permutations, kernel = parameters
    arrays = {"segments": array(rows, np.uint64), "permutations": array(permutations, np.uint16)}
    core = veil.Veil(key=key, l=l, **arrays, kernel=core_kernel(kernel))
    return core, reference.Veil(reference.Hashes(key), l, rows, permutations, kernel)


@given(parameter_sets(), st.data())
def test_candidates_equal_the_reference(parameters, data):
    core, plain = both(parameters, data.draw(st.binary(min_size=32, max_size=32)))
    _, rows, permutations, _ = parameters
    record = st.tuples(
        st.integers(0, 2**64 - 1),
        st.integers(0, len(rows) - 1),
        st.integers(-1, len(permutations[0]) - 1),
        st.integers(0, 2**32 - 1),
    )
    persons, at, values, events = zip(*data.draw(st.lists(record, min_size=1, max_size=20)), strict=True)
    found = core.candidates(u64(persons), u32(at), i32(values), u32(events))
    assert found.tolist() == [plain.candidates(*one) for one in zip(persons, at, values, events, strict=True)]
    offers = [value >= 0 and rows[row][value] > 0 for row, value in zip(at, values, strict=True)]
    assert core.is_offered(u32(at), i32(values)).tolist() == offers


def check(drawn, memories):
    assert drawn.candidates.tolist() == [sorted(memory.slots) for memory in memories]
    assert [row.tobytes() for row in drawn.memories] == [memory.to_bytes() for memory in memories]
    assert drawn.offered.tolist() == [memory.true_slot is not None for memory in memories]
    assert drawn.strata.tolist() == [memory.stratum for memory in memories]
    assert drawn.events.tolist() == [memory.event for memory in memories]


@given(parameter_sets(), st.data())
def test_trajectories_equal_the_reference(parameters, data):
    core, plain = both(parameters)
    _, rows, permutations, _ = parameters
    persons = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8, unique=True))
    values = st.lists(st.integers(-1, len(permutations[0]) - 1), min_size=len(persons), max_size=len(persons))
    at, first = [person % len(rows) for person in persons], data.draw(values)
    drawn = core.begin(u64(persons), u32(at), i32(first))
    memories = [plain.begin(*one) for one in zip(persons, at, first, strict=True)]
    check(drawn, memories)
    for kind, gap in data.draw(
        st.lists(st.tuples(st.sampled_from(["visit", "correction"]), st.integers(1, 3)), max_size=4)
    ):
        steps = gap if kind == "visit" else 1
        events = [memory.event + steps for memory in memories]
        later = data.draw(values)
        drawn = core.step(u64(persons), drawn.memories, i32(later), kind=kind, events=u32(events))
        moved = zip(persons, memories, later, strict=True)
        memories = [plain.step(*one, kind, event) for one, event in zip(moved, events, strict=True)]
        check(drawn, memories)


def test_persons_who_follow_the_kernel_stay_offered():
    """Long trajectories with steps drawn from the kernel: nobody is lost, and the true value is among the candidates."""
    rng = np.random.default_rng(5)
    rows = [reference.segments([5, 1, 1, 3, 0, 2], 3)]
    kernel = reference.Shares([ONE // 2] * 5 + [0], ONE // 2, [0, 0, 0, 1, 1, 1])
    core, plain = both((3, rows, reference.random_permutations(6, 4, SEED), kernel))
    persons, values = u64(range(300)), i32(rng.choice([0, 1, 2, 3, 5], 300))
    drawn = core.begin(persons, u32([0] * 300), values)
    for kind in ["visit", "correction", "visit", "visit"]:
        laws = [plain.kernel.law(rows[0], int(v), kind) for v in values]
        values = i32(rng.choice(list(law), p=[float(share) for share in law.values()]) for law in laws)
        drawn = core.step(persons, drawn.memories, values, kind=kind)
        assert drawn.offered.all()
        assert (drawn.candidates == values[:, None]).any(axis=1).all()


def test_no_question_is_asked_twice_for_a_person():
    """Events draw independently only if no two of them share a question."""

    class Recorder(reference.Hashes):
        def below(self, *question):
            asked.append(question[:3])
            return super().below(*question)

    asked = []
    kernel = reference.Shares([ONE // 2] * 4, ONE // 2, [0, 0, 1, 1])
    plain = reference.Veil(Recorder(KEY), 3, [reference.segments([1, 2, 3, 4], 3)], [[0, 1, 2, 3]], kernel)
    memories = [plain.begin(person, 0, 2) for person in range(5)]
    for _ in range(6):
        memories = [plain.step(person, memory, 2) for person, memory in enumerate(memories)]
    assert len(asked) > 50
    assert len(asked) == len(set(asked))


GOOD = {"key": KEY, "l": 2, "segments": np.full((1, 2), ONE, np.uint64), "permutations": np.array([[0, 1]], np.uint16)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"l": 1},
        {"l": 255},
        {"l": 3},
        {"segments": np.array([[ONE, ONE - 1]], np.uint64)},
        {"segments": np.zeros((0, 2), np.uint64)},
        {"permutations": np.array([[0, 0]], np.uint16)},
        {"permutations": np.array([[0, 2]], np.uint16)},
        {"permutations": np.zeros((0, 2), np.uint16)},
        {"kernel": veil.Kernel.from_stays(u64([0]), within=0, parents=u32([0]))},
        {"kernel": veil.Kernel.from_matrix(u64([0, 1, 1]), array([2], np.uint16), u64([1]))},
    ],
)
def test_a_parameter_set_that_does_not_fit_is_refused(wrong):
    veil.Veil(**GOOD)
    with pytest.raises(ValueError):
        veil.Veil(**(GOOD | wrong))


@pytest.mark.parametrize(
    ("starts", "targets", "weights"),
    [
        ([0, 2], [1, 0], [1, 1]),
        ([0, 1], [0], [0]),
        ([0, 2], [0, 1], [2**64 - 1, 1]),
        ([1, 1], [0], [1]),
        ([0, 1], [0], []),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(starts, targets, weights):
    with pytest.raises(ValueError, match="does not fit"):
        veil.Kernel.from_matrix(u64(starts), array(targets, np.uint16), u64(weights))


def test_batches_that_do_not_fit_are_refused():
    core = veil.Veil(**GOOD)
    drawn = core.begin(u64([1]), u32([0]), i32([1]))
    other = drawn.memories.copy()
    other[0, 7] = 9
    for call in [
        lambda: core.candidates(u64([1]), u32([1]), i32([0])),
        lambda: core.candidates(u64([1]), u32([0]), i32([2])),
        lambda: core.candidates(u64([1]), u32([0]), i32([-2])),
        lambda: core.candidates(u64([1, 2]), u32([0]), i32([0])),
        lambda: core.begin(u64([7, 1, 7]), u32([0] * 3), i32([0] * 3)),
        lambda: core.step(u64([1, 1]), np.repeat(drawn.memories, 2, axis=0), i32([0, 1]), kind="visit"),
        lambda: core.step(u64([1]), drawn.memories, i32([1]), kind="move"),
        lambda: core.step(u64([1]), drawn.memories[:, :-1], i32([1]), kind="visit"),
        lambda: core.step(u64([1]), drawn.memories, i32([1]), kind="visit", events=u32([0])),
        lambda: core.step(u64([1]), drawn.memories, i32([1]), kind="visit", events=u32([2**31])),
        lambda: core.step(u64([1]), drawn.memories, i32([1]), kind="correction", events=u32([2])),
        lambda: core.step(u64([1]), other, i32([1]), kind="visit"),
    ]:
        with pytest.raises(ValueError):
            call()
