"""Tables I to VI of Li and Zhou: what two 2-diverse releases disclose, and a second release that does not."""

import numpy as np
import pytest
from scipy import sparse

from reticent.engine.series.grouping import Grouping
from reticent.engine.series.history import History
from reticent.engine.series.m_distinct import FirstGroupRules, form_groups
from reticent.engine.series.update_graph import People, risk_of
from reticent.policy import Policy
from reticent.policy.updates import Updates, updates_of
from reticent.verify.series import can_match

NAMES = ("Ken", "Julia", "Tom", "Harry", "Lily", "Ben")
FIRST = ("dyspepsia", "pneumonia", "pneumonia", "gastritis", "glaucoma", "flu")
SECOND = ("dyspepsia", "lung cancer", "pneumonia", "dyspepsia", "glaucoma", "pneumonia")
QUASI_2 = ((14, 20), (18, 31), (15, 27), (23, 32), (12, 17), (26, 35))
TABLE_III = (("Ken", "Julia"), ("Tom", "Harry"), ("Lily", "Ben"))
TABLE_IV = (("Ken", "Lily"), ("Julia", "Tom"), ("Harry", "Ben"))
TABLE_V = (
    (("Ken", "Tom"), ("dyspepsia", "pneumonia")),
    (("Julia", "Harry"), ("dyspepsia", "lung cancer")),
    (("Lily",), ("glaucoma", "pneumonia")),
    (("Ben",), ("cataract", "pneumonia")),
)
UPDATES = """\
dyspepsia;dyspepsia
dyspepsia;gastritis
gastritis;gastritis
gastritis;dyspepsia
flu;flu
flu;pneumonia
flu;lung cancer
pneumonia;pneumonia
pneumonia;flu
pneumonia;lung cancer
lung cancer;lung cancer
glaucoma;glaucoma
glaucoma;cataract
cataract;cataract
"""


@pytest.fixture
def updates(tmp_path):
    (tmp_path / "updates.csv").write_text(UPDATES)
    columns = {"name": "identifier", "zip": "quasi", "ill": {"role": "sensitive", "updates": {"file": "updates.csv"}}}
    return updates_of(Policy.from_dict({"version": 1, "columns": columns}, base=tmp_path), "ill")


def hashes(names):
    return np.array([NAMES.index(name) + 1 for name in names], dtype=np.uint64)


def publish(history, updates, groups, diseases):
    """Adds a release given as (members, values shown) per group."""
    who = [name for members, _ in groups for name in members]
    group = np.array([g for g, (members, _) in enumerate(groups) for _ in members], dtype=np.int32)
    own = np.array([updates.codes[diseases[NAMES.index(name)]] for name in who], dtype=np.int32)
    sizes = [len(values) for _, values in groups]
    shown = np.array([updates.codes[v] for _, values in groups for v in values], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return history.extend(hashes(who), hashes(who), group, own, (offsets, shown))


def plain(groups, diseases):
    return [(members, tuple(diseases[NAMES.index(n)] for n in members)) for members in groups]


def candidates(history, updates, name):
    """What a reader still holds possible for a person in each release: every value with a share above zero, by pruning."""
    at = int(history.last(hashes([name]))[0])
    chain = []
    while at >= 0:
        group = history.group[at]
        chain.insert(0, set(history.values[history.offsets[group] : history.offsets[group + 1]].tolist()))
        at = int(history.previous[at])
    matrix = updates.matrix.toarray() > 0
    for _ in range(len(NAMES)):
        for i in range(len(chain) - 1):
            chain[i] = {u for u in chain[i] if any(matrix[u, v] for v in chain[i + 1])}
            chain[i + 1] = {v for v in chain[i + 1] if any(matrix[u, v] for u in chain[i])}
    return [{updates.values[v] for v in layer} for layer in chain]


def test_the_attack_on_tables_iii_and_iv_finds_what_the_paper_says(updates):
    history = publish(History(), updates, plain(TABLE_III, FIRST), FIRST)
    history = publish(history, updates, plain(TABLE_IV, SECOND), SECOND)
    assert candidates(history, updates, "Ben") == [{"flu"}, {"pneumonia"}]
    assert candidates(history, updates, "Julia") == [{"pneumonia"}, {"lung cancer", "pneumonia"}]
    assert candidates(history, updates, "Ken") == [{"dyspepsia"}, {"dyspepsia"}]
    assert candidates(history, updates, "Lily") == [{"glaucoma"}, {"glaucoma"}]
    risk = risk_of(history, updates, history.last(hashes(["Ben", "Julia", "Ken", "Lily"])))
    assert risk.disclosed.tolist() == [2, 1, 2, 2]
    np.testing.assert_allclose(risk.true_value, 1.0)


def test_examples_2_and_3_julias_risk_in_each_release(updates):
    def risk(history):
        return risk_of(history, updates, history.last(hashes(["Julia"])))

    first = publish(History(), updates, plain(TABLE_III, FIRST), FIRST)
    assert risk(first).true_value.tolist() == [0.5]
    both = publish(first, updates, plain(TABLE_IV, SECOND), SECOND)
    assert (risk(both).true_value.tolist(), risk(both).disclosed.tolist()) == ([1.0], [1])
    # With the value that is excluded as her first one, only the second release counts.
    other = tuple("dyspepsia" if name == "Julia" else ill for name, ill in zip(NAMES, FIRST, strict=True))
    first = publish(History(), updates, plain(TABLE_III, FIRST), other)
    np.testing.assert_allclose(risk(publish(first, updates, plain(TABLE_IV, SECOND), SECOND)).true_value, 0.5)


def test_table_v_is_2_distinct_with_the_counterfeits_of_table_vi(updates):
    sets = {code: frozenset(updates.matrix[[code]].indices.tolist()) for code in range(len(updates))}
    before = {name: values for members, values in plain(TABLE_III, FIRST) for name in members}
    for members, values in TABLE_V:
        assert len(values) == len(set(values)) == 2
        now = [updates.codes[value] for value in values]
        assert all(can_match([sets[updates.codes[value]] for value in before[name]], now) for name in members)
    counterfeits = {number: len(values) - len(members) for number, (members, values) in enumerate(TABLE_V, 1)}
    assert counterfeits == {1: 0, 2: 0, 3: 1, 4: 1}


def test_m_invariance_cannot_publish_whose_value_left_the_set(updates):
    """Section I-A.2 says it of Julia, whose {dyspepsia, pneumonia} does not cover lung cancer; it holds of Harry and Ben as well."""
    history = publish(History(), updates, plain(TABLE_III, FIRST), FIRST)
    still = Updates(updates.values, sparse.eye_array(len(updates), format="csr"))
    values = np.array([updates.codes[v] for v in SECOND], dtype=np.int32)
    order = FirstGroupRules(2, np.arange(len(updates), dtype=np.int32), bytes(32), static_values=True)
    found = form_groups(
        history, still, People(hashes(NAMES), hashes(NAMES), values), np.zeros((6, 1), np.float32), order
    )
    assert [name for name, held in zip(NAMES, found.withheld, strict=True) if held] == ["Julia", "Harry", "Ben"]


def test_table_v_resists(updates):
    history = publish(History(), updates, plain(TABLE_III, FIRST), FIRST)
    history = publish(history, updates, TABLE_V, SECOND)
    risk = risk_of(history, updates)
    assert risk.disclosed.sum() == 0
    assert risk.worst.max() < 1


def test_our_second_release_resists_and_needs_no_counterfeit(updates):
    history = publish(History(), updates, plain(TABLE_III, FIRST), FIRST)
    values = np.array([updates.codes[v] for v in SECOND], dtype=np.int32)
    people = People(hashes(NAMES), hashes(NAMES), values)
    where = (np.array(QUASI_2, dtype=np.float32) - [12, 17]) / [14, 18]
    order = FirstGroupRules(2, np.arange(len(updates), dtype=np.int32), bytes(32))
    found = form_groups(history, updates, people, np.ascontiguousarray(where, dtype=np.float32), order)
    assert isinstance(found, Grouping)
    assert not found.withheld.any()
    rows, group, value = found.published_records()
    assert sorted(rows.tolist()) == list(range(6))
    assert found.counterfeits.sum() == 0  # the paper's Table VI has two
    after = history.extend(people.hashes[rows], people.traits[rows], group, value, (found.offsets, found.value))
    risk = risk_of(after, updates)
    assert risk.disclosed.sum() == 0
    for name in NAMES:
        before, now = candidates(after, updates, name)
        assert len(before) == len(now) == 2
        rows_of = updates.matrix
        sets = [
            frozenset(rows_of.indices[rows_of.indptr[c] : rows_of.indptr[c + 1]].tolist())
            for c in (updates.codes[v] for v in before)
        ]
        assert can_match(sets, [updates.codes[v] for v in now])


ONE_WAY = [[0, 1], [1], [2]]
"""Flu (0) may become pneumonia (1), which stays; so does dyspepsia (2)."""


@pytest.mark.parametrize(("first", "second"), [((0, 1), (2, 2)), ((2, 2), (1, 1))])
def test_two_signatures_that_meet_need_no_counterfeit(first, second):
    """One person is left of {flu, dyspepsia}, one of {dyspepsia, pneumonia}; the second signature is what both share."""
    known = Updates(
        ("flu", "pneumonia", "dyspepsia"), sparse.csr_array(np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1.0]]))
    )
    groups = np.array([0, 2, 4], dtype=np.int64), np.array([0, 2, 1, 2], dtype=np.int32)
    persons = np.array([1, 2], dtype=np.uint64)
    before, now = (np.array(pair, dtype=np.int32) for pair in zip(first, second, strict=True))
    past = History().extend(persons, persons, np.array([0, 1], dtype=np.int32), before, groups)
    where = np.array([[0.0], [1.0]], dtype=np.float32)
    release = form_groups(
        past, known, People(persons, persons, now), where, FirstGroupRules(2, np.arange(3, dtype=np.int32), bytes(32))
    )
    assert not release.withheld.any()
    assert release.counterfeits.tolist() == [0]
    assert sorted(release.value.tolist()) == [1, 2]
    for values in ((0, 2), (1, 2)):
        assert can_match([frozenset(ONE_WAY[v]) for v in values], release.value.tolist())


def test_example_5_julias_second_candidates_are_a_legal_update_instance(updates):
    rows = updates.matrix
    sets = {v: frozenset(rows.indices[rows.indptr[c] : rows.indptr[c + 1]].tolist()) for v, c in updates.codes.items()}
    signature = [sets["dyspepsia"], sets["pneumonia"]]
    code = updates.codes
    assert can_match(signature, [code["dyspepsia"], code["lung cancer"]])
    assert can_match(signature, [code["gastritis"], code["flu"]])
    assert not can_match(signature, [code["pneumonia"], code["lung cancer"]])  # Table IV
