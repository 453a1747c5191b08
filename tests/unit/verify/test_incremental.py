"""The incremental verifier of a stream accepts exactly what the verifier of the whole transcript accepts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reticent.verify.stream import incremental
from reticent.verify.stream.incremental import GroupVerifier, OpenedGroups, RecordVerifier

LABELS = ["a", "c", "b", None]


def opened(*groups: tuple[int, int, list[int], list[int]]) -> OpenedGroups:
    """Groups by number: the row before which each is announced, codes and counts."""
    sizes = [len(codes) for _, _, codes, _ in groups]
    return OpenedGroups(
        np.array([group for group, *_ in groups], dtype=np.uint64),
        np.array([at for _, at, *_ in groups], dtype=np.int64),
        np.cumsum([0, *sizes]),
        np.array([code for *_, codes, _ in groups for code in codes], dtype=np.int32),
        np.array([count for *_, counts in groups for count in counts], dtype=np.int32),
    )


def ask(
    verifier: GroupVerifier, first: int, groups: list[int], *new: tuple[int, int, list[int], list[int]]
) -> list[str]:
    seqs = np.arange(first, first + len(groups), dtype=np.uint64)
    return verifier.violations(seqs, np.array(groups, dtype=np.uint64), opened(*new), LABELS)


FINE = (7, 0, [3, 0, 2], [1, 1, 1])


@pytest.fixture(autouse=True, params=[0, 1000])
def few(request, monkeypatch):
    """Each batch at once, or record by record: both must give the same result."""
    monkeypatch.setattr(incremental, "_SMALL_BATCH", request.param)


def test_sound_batches_pass_and_are_remembered():
    verifier = GroupVerifier(3)
    assert ask(verifier, 0, [7, 7], FINE) == []
    assert ask(verifier, 2, [7, 9], (9, 1, [0, 2, 1], [2, 2, 2])) == []
    assert ask(verifier, 4, [9, 9, 9, 9, 9]) == []
    assert ask(verifier, 9, [9]), "the group is full"


@pytest.mark.parametrize(
    ("groups", "new", "words"),
    [
        ([7], (7, 0, [0, 2], [1, 1]), "fewer than 3 candidates"),
        ([7], (7, 0, [0, 1, 2], [1, 1, 1]), "canonical order"),  # a, c, b
        ([7], (7, 0, [0, 0, 2], [1, 1, 1]), "canonical order"),
        ([7], (7, 0, [0, 2, 1], [2, 1, 1]), "above 1/3"),
        ([7], (7, 0, [0, 2, 1], [0, 0, 0]), "above 1/3"),
        ([7, 7, 7, 7], FINE, "more records than"),
        ([7, 8], FINE, "without being opened"),
        ([7, 7], (7, 1, [3, 0, 2], [1, 1, 1]), "opened after its first record"),
        ([5, 7], (5, 0, [3, 0, 2], [1, 1, 1]), "without being opened"),
    ],
)
def test_a_violation_is_named_without_a_value(groups, new, words):
    verifier = GroupVerifier(3)
    (violation,) = ask(verifier, 0, groups, new)
    assert words in violation
    assert not any(f"'{label}'" in violation for label in LABELS)


def test_groups_are_opened_once_and_positions_rise():
    verifier = GroupVerifier(3)
    assert ask(verifier, 0, [7], FINE) == []
    assert ask(verifier, 0, [7]) == ["a position occurs twice"]
    assert ask(verifier, 1, [7], FINE) == ["a group is opened twice"]
    assert ask(GroupVerifier(3), 0, [7, 7], FINE, FINE) == ["a group is opened twice"]


def test_many_groups_a_restart_and_retirement(monkeypatch):
    monkeypatch.setattr(incremental, "_RECENT_LIMIT", 8)
    rng = np.random.default_rng(3)
    names = rng.permutation(1 << 20)[:400].tolist()
    verifier = GroupVerifier(3, retire_after=100)
    for i in range(0, 400, 4):
        fresh = [(name, row, [3, 0, 2], [1, 1, 1]) for row, name in enumerate(names[i : i + 4])]
        assert ask(verifier, i, names[i : i + 4], *fresh) == []
        again = GroupVerifier(3, retire_after=100)
        again.restore(verifier.snapshot())
        verifier = again
    assert ask(verifier, 400, names[396:]) == []
    assert ask(verifier, 404, names[:1]), "nobody joins a group that is too old"
    assert len(verifier._open) + len(verifier._recent) < 200


def test_names_with_a_common_prefix_are_distinguished():
    verifier = GroupVerifier(3)
    groups = [1 << 40 | 5, 1 << 40 | 3, 1 << 40 | 5, 1 << 40 | 3]
    new = [(groups[0], 0, [3, 0, 2], [1, 1, 1]), (groups[1], 1, [3, 0, 2], [1, 1, 1])]
    assert ask(verifier, 0, groups, *new) == []
    assert ask(verifier, 4, groups[:2]) == []
    assert ask(verifier, 6, groups[:2]), "both are full"


def test_generalized_records_represent_k_records_and_l_values():
    verifier = RecordVerifier(3, 2)

    def records(ages: list[str], ills: list[str]) -> pa.Table:
        return pa.table({"age": ages, "ill": ills})

    assert verifier.violations(records(["1-5"] * 2, ["a", "b"]), ["age"], "ill")
    assert verifier.violations(records(["1-5"] * 3, ["a"] * 3), ["age"], "ill")
    assert verifier.violations(records(["1-5"] * 3, ["a", "a", "b"]), ["age"], "ill") == []
    again = RecordVerifier(3, 2)
    again.restore(verifier.snapshot())
    assert again.violations(records(["1-5"], ["c"]), ["age"], "ill") == [], "its class has three records already"
    assert again.violations(records(["6-9"], ["c"]), ["age"], "ill")


def test_generalized_records_represent_k_persons():
    def violations_of(persons: list[int], ills: list[str], restored: bool = False) -> list[str]:
        verifier, seqs = RecordVerifier(3, 2, 10), np.arange(len(ills), dtype=np.uint64)
        verifier.add_persons(seqs, np.array(persons, dtype=np.uint64))
        if restored:
            state, verifier = verifier.snapshot(), RecordVerifier(3, 2, 10)
            verifier.restore(state)
        return verifier.violations(pa.table({"seq": seqs, "age": ["1-5"] * len(ills), "ill": ills}), ["age"], "ill")

    for restored in (False, True):
        assert violations_of([1, 2, 3], ["a", "a", "b"], restored) == []
        assert violations_of([1, 1, 2], ["a", "a", "b"], restored), "two persons"
        assert violations_of([1, 2, 3, 3], ["a", "a", "a", "b"], restored) == []
    verifier = RecordVerifier(1, 2, 10)
    verifier.add_persons(np.arange(2, dtype=np.uint64), np.array([7, 7], dtype=np.uint64))
    assert verifier.violations(pa.table({"seq": [0, 1], "age": ["1"] * 2, "ill": ["a", "b"]}), ["age"], "ill"), (
        "one person"
    )


def test_persons_are_forgotten_when_their_records_cannot_be_pending_anymore():
    verifier = RecordVerifier(1, 1, 4)
    for start in range(0, 100, 2):
        verifier.add_persons(np.arange(start, start + 2, dtype=np.uint64), np.ones(2, dtype=np.uint64))
        assert verifier.violations(pa.table({"seq": [start], "age": ["1"], "ill": ["a"]}), ["age"], "ill") == []
    assert len(verifier.snapshot()) <= 8 * (1 + 2 * 4 + 1)
