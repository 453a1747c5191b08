"""Readers of many publications against the veil: on what the engines of evolving tables and series publish.

The exact tests let the engine's own book-keeping of persons ask every answer of a random function; the others tally, over many persons
and keys, how often each published candidate was the truth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import evolving_cases as cases
import numpy as np
import pyarrow as pa
import pytest
import veil_reference as twin
from scipy import stats

from reticent import EvolvingTable
from reticent.engine.evolving.person_state import Arrivals, PersonStates, decode_memories
from reticent.engine.evolving.veil import Veil
from reticent.engine.rng import Rng
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.publication import table
from reticent.publication.evolving import Evolving
from reticent.publication.series import Series
from reticent.release import Ledger
from reticent.store import Store
from reticent.verify import verify

# -- exact: the engine's events, every answer of a random function -------------------------------------------------------

L, ONE, UNITS = 2, 3, (1, 2, 3)
KERNEL = twin.Matrix([{0: 6, 1: 3, 2: 1}, {0: 2, 1: 8}, {0: 1, 1: 1, 2: 2}])
PRIOR = {value: Fraction(units, L * ONE) for value, units in enumerate(UNITS)}


class Twin:
    """The twin of the core behind the face of the core."""

    def __init__(self, draws):
        self.veil = twin.Veil(draws, L, [list(UNITS)], [(0, 1, 2), (1, 0, 2)], KERNEL, ONE)

    def begin(self, units, rows, values):
        return self._sights(
            self.veil.begin(int(u), int(r), int(v)) for u, r, v in zip(units, rows, values, strict=True)
        )

    def step(self, units, memories, values, *, kind, events=None):
        stepped = zip(units, memories, values, strict=True)
        return self._sights(self.veil.step(int(u), self._read(m), int(v), kind) for u, m, v in stepped)

    def _read(self, memory):
        (shown,) = [decode_memories(memory[None, :])]
        slots = np.ascontiguousarray(memory[8:]).view("<u2")
        truth = None if memory[6] == 255 else int(memory[6])
        return twin.Memory(int(shown.strata[0]), int(shown.events[0]), truth, tuple(slots.tolist()))

    def _sights(self, memories):
        parts = [np.frombuffer(memory.to_bytes(), np.uint8) for memory in memories]
        return SimpleNamespace(memories=np.stack(parts))


def arrival(value, order=0):
    person = np.array([1], np.uint64)
    return Arrivals(person, person, np.zeros(1, np.uint32), np.array([value], np.int32), np.array([order], np.int64))


def laws(kinds):
    """Every life of a person with its probability: first values by the prior, later ones by the law of their kind."""
    lives = {(value,): share for value, share in PRIOR.items()}
    for kind in kinds:
        grown = defaultdict(Fraction)
        for life, weight in lives.items():
            law = KERNEL.law(UNITS, life[-1], kind) if kind in ("visit", "correction") else {life[-1]: Fraction(1)}
            for value, share in law.items():
                grown[(*life, value)] += weight * share
        lives = grown
    return {life: weight for life, weight in lives.items() if weight}


def transcripts(kinds, keep):
    """(life, all that was published) with probabilities; `same` is an unchanged row or a return, `keep` whether lives are remembered."""

    def history(life, draws):
        lives, order, sights = PersonStates(Twin(draws), L), 0, []
        for value, kind in zip(life, ("insert", *kinds), strict=True):
            if kind == "return" and not keep:
                lives = PersonStates(Twin(draws), L)
            order += kind == "visit"
            shown = decode_memories(lives.add_events(arrival(value, order)))
            sights.append((int(shown.events[0]), tuple(shown.candidates[0].tolist())))
        return tuple(sights)

    for life, weight in laws(kinds).items():
        for chance, sights in twin.worlds(lambda draws, life=life: history(life, draws)):
            yield life, sights, weight * chance


def excess(kinds, *, keep=True):
    """By how much the best reader of all publications beats the stated weight, of any value at any time."""
    joint = defaultdict(Fraction)
    for life, sights, weight in transcripts(kinds, keep):
        joint[sights, life] += weight
    total = defaultdict(Fraction)
    for (sights, _), weight in joint.items():
        total[sights] += weight
    assert sum(total.values()) == 1
    worst = Fraction(-1)
    for at in range(len(kinds) + 1):
        share = defaultdict(Fraction)
        for (sights, life), weight in joint.items():
            share[sights, life[at]] += weight / total[sights]
        for (sights, value), posterior in share.items():
            worst = max(worst, posterior - Fraction(sights[at][1].count(value), L))
    return worst


@pytest.mark.parametrize(
    "kinds",
    [
        ("same",) * 9,
        ("correction",),
        ("correction", "same", "correction"),
        ("correction", "return", "same"),
        ("visit", "correction", "same"),
        ("visit", "visit", "return"),
    ],
    ids="-".join,
)
def test_all_publications_together_tell_what_each_slot_says(kinds):
    assert excess(kinds) == 0


def test_a_person_who_is_forgotten_when_it_goes_shows_itself():
    assert excess(("correction", "return"), keep=False) > Fraction(1, 10)


# -- on published bytes ---------------------------------------------------------------------------------------------------

CHANCE = 1e-5
"""Keys are fresh in every run: what is less likely than this is no chance, and a thousandth would be met every year."""
VALUES = ["asthma", "croup", "flu", "gout"]
COUNTS = np.array([4, 3, 2, 1])
RING = {v: {v: 0.5, VALUES[(i + 1) % 4]: 0.3, VALUES[(i + 2) % 4]: 0.2} for i, v in enumerate(VALUES)}


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "prior.csv").write_text(
        "value,count\n" + "".join(f"{v},{n}\n" for v, n in zip(VALUES, COUNTS, strict=True))
    )
    steps = [(v, w, p) for v, law in RING.items() for w, p in law.items()]
    (tmp_path / "kernel.csv").write_text("value,next,probability\n" + "".join(f"{v},{w},{p}\n" for v, w, p in steps))

    def make(l=2, prior=True, person="id", kernel=True, **more):
        columns = {"id": "identifier", "line": "plain", "sex": "quasi", "ill": "sensitive"} | more.pop("columns", {})
        steps = {"kernel": {"file": "kernel.csv"}} if kernel else {}
        given = {"prior": {"file": "prior.csv"} | steps} if prior else {}
        rules = {"version": 1, "person": person, "columns": columns, "privacy": {"l": l}, "table": {"method": "veil"}}
        return Policy.from_dict(rules | given | more, base=tmp_path)

    return make


def people(values, first=0):
    lines = range(first, first + len(values))
    return pa.table(
        {"id": [f"p{i}" for i in lines], "line": list(lines), "sex": ["f"] * len(values), "ill": list(values)}
    )


def drawn(rng, n):
    return rng.choice(VALUES, n, p=COUNTS / COUNTS.sum())


def moved(rng, values, stay):
    laws = {v: {w: p for w, p in law.items() if stay or w != v} for v, law in RING.items()}
    return np.array(
        [rng.choice(list(law), p=np.array(list(law.values())) / sum(law.values())) for law in (laws[v] for v in values)]
    )


def sets_of(release, l=2):
    data = release.tables["data"]
    columns = [data.column(name).to_pylist() for name in ("line", "event", *(f"ill_{slot + 1}" for slot in range(l)))]
    return {line: (event, tuple(candidates)) for line, event, *candidates in zip(*columns, strict=True)}


def p_value(trails, truths):
    """Pearson: given all that was published of a person, each candidate of its last set is true as often as it stands there."""
    tallies = defaultdict(Counter)
    for trail, truth in zip(trails, truths, strict=True):
        tallies[trail][truth] += 1
    statistic, freedom = 0.0, 0
    for trail, truth in tallies.items():
        size, candidates = sum(truth.values()), trail[-1]
        if size < 20:
            continue
        for value in set(candidates):
            expected = size * candidates.count(value) / len(candidates)
            statistic += (truth[value] - expected) ** 2 / expected
        freedom += len(set(candidates)) - 1
    assert freedom >= 5
    return stats.chi2.sf(statistic, freedom)


@pytest.fixture
def evolving(tmp_path):
    with Store.open(tmp_path / "house.db") as store:

        def begin(policy):
            store.register("evolving", policy_hash=policy.hash)
            return store, Evolving(store, policy)

        yield begin


def test_ten_publications_and_a_table_of_one_house_say_the_same(rules, evolving):
    policy, rng, n = rules(l=3), np.random.default_rng(1), 2500
    store, driver = evolving(policy)
    values = drawn(rng, n)
    with store.lock("evolving"):
        driver.insert(people(values))
        shown = []
        for number in range(10):
            driver.insert(people(drawn(rng, 20), first=n + 20 * number))
            shown.append(sets_of(driver.publish().release, 3))
    once = sets_of(table.publish(people(values), policy, store=store).release, 3)
    assert all(sets[line] == once[line] for sets in shown for line in range(n))
    trails = [tuple(once[line][1]) for line in range(n)]
    assert p_value([(trail,) for trail in trails], values) > CHANCE


def test_a_refusal_names_changes_without_a_kernel_or_the_prior(rules, evolving):
    store, driver = evolving(rules(kernel=False))
    with store.lock("evolving"):
        driver.insert(people([VALUES[0]] * 100))
        driver.publish()
        driver.update(people([VALUES[1]] * 30))
        with pytest.raises(GuaranteeError, match="changed since") as refusal:
            driver.publish()
        assert "kernel" in refusal.value.hint
        driver.delete(people([VALUES[1]] * 30).column("id"))
        driver.publish()
        driver.insert(people(["unheard of"] * 30, first=200))
        with pytest.raises(GuaranteeError, match="not among their candidates; nothing") as refusal:
            driver.publish()
        assert "prior again" in refusal.value.hint


def test_corrections_and_returns_leave_each_candidate_its_weight(rules, evolving):
    """Three values of each person; the reader sees the sets at all of them, and that some were away in between."""
    policy, rng, n = rules(), np.random.default_rng(2), 6000
    store, driver = evolving(policy)
    values = drawn(rng, n)
    with store.lock("evolving"):
        driver.insert(people(values))
        shown = [sets_of(driver.publish().release)]
        for _ in range(2):
            driver.delete([f"p{i}" for i in range(0, n, 3)])
            values = moved(rng, values, stay=False)
            driver.update(people(values).filter(pa.array([i % 3 > 0 for i in range(n)])))
            driver.insert(people(values).filter(pa.array([i % 3 == 0 for i in range(n)])))
            shown.append(sets_of(driver.publish().release))
    assert {event for event, _ in shown[-1].values()} == {2}
    trails = [tuple(sets[line][1] for sets in shown) for line in range(n)]
    assert p_value(trails, values) > CHANCE
    wrong = moved(rng, drawn(rng, n), stay=True)
    assert p_value(trails, wrong) < 1e-6  # the statistic notices other truths


def test_six_releases_of_a_series_leave_each_candidate_its_weight(rules, tmp_path):
    policy, rng, n = rules(), np.random.default_rng(3), 6000
    values = drawn(rng, n)
    with Store.open(tmp_path / "series.db") as store:
        store.register("series", policy_hash=policy.hash)
        with store.lock("series"):
            driver, shown = Series(store, policy), []
            for release in range(6):
                values = moved(rng, values, stay=True) if release else values
                shown.append(sets_of(driver.publish(people(values)).release))
    for window in (slice(5, 6), slice(4, 6), slice(0, 6, 5)):
        trails = [tuple(sets[line][1] for sets in shown[window]) for line in range(n)]
        assert p_value(trails, values) > CHANCE, window


def test_two_of_one_value_and_one_each_of_two_others(rules):
    """A table that is its own prior made somebody certain here; a prior from elsewhere does not, and without one nothing is published."""
    policy, certain = rules(), 0
    for seed in range(200):
        engine = Veil(policy, rng=Rng.from_seed(seed))
        engine.insert(people(["asthma", "asthma", "croup", "flu"]))
        shown = [sets_of(engine.cut()[0]) for _ in range(3)]
        assert shown[0] == shown[1] == shown[2]
        certain += sum(len(set(candidates)) == 1 for _, candidates in shown[0].values())
    assert certain == 0
    with pytest.raises(PolicyError, match="needs a prior") as refused:
        Veil(rules(prior=False), rng=Rng.fresh())
    assert "public statistics" in str(refused.value)
    assert "reticent prior" in str(refused.value)


# -- what counts as an event ------------------------------------------------------------------------------------------------


def test_only_another_value_is_an_event(rules):
    engine = Veil(rules(), rng=Rng.from_seed(1))
    engine.insert(people(["flu", "gout"]))
    before = sets_of(engine.cut()[0])
    other = people(["flu", "gout"]).set_column(2, "sex", pa.array(["m", "m"]))
    engine.update(other)
    (release,) = engine.cut()
    assert sets_of(release) == before
    assert set(release.tables["data"].column("sex").to_pylist()) == {"m"}
    engine.update(people(["asthma", "gout"]))
    after = sets_of(engine.cut()[0])
    assert [after[line][0] for line in (0, 1)] == [1, 0]
    assert "asthma" in after[0][1]
    assert after[1] == before[1]


def test_without_a_kernel_nothing_moves_and_the_new_value_is_not_offered(rules):
    policy = rules()
    policy = Policy.from_dict(policy.to_dict() | {"prior": {"file": "prior.csv"}}, base=policy.base)
    engine = Veil(policy, rng=Rng.from_seed(1))
    engine.insert(people(["flu"] * 40))
    before = sets_of(engine.cut()[0])
    engine.update(people(["gout"] * 2))
    after = sets_of(engine.cut()[0])
    assert [candidates for _, candidates in after.values()] != []
    assert all(after[line][1] == before[line][1] for line in range(40))
    assert [after[line][0] for line in (0, 1, 2)] == [1, 1, 0]


def test_several_records_of_a_person_need_an_order(rules):
    events = {"person": {"column": "id", "events": "visit"}, "columns": {"visit": "plain", "key": "identifier"}}
    engine = Veil(rules(**events, evolving={"record": "key"}), rng=Rng.from_seed(1))

    def visits(ids, numbers, values, first=0):
        keys = [f"k{first + i}" for i in range(len(ids))]
        lines = [first + i for i in range(len(ids))]
        columns = {"id": ids, "line": lines, "sex": ["f"] * len(ids), "ill": values, "visit": numbers, "key": keys}
        return pa.table(columns)

    engine.insert(visits(["a", "a", "b"], [2, 1, 1], ["gout", "flu", "gout"]))
    shown = sets_of(engine.cut()[0])
    assert [shown[line][0] for line in (0, 1, 2)] == [1, 0, 0]
    assert ["gout" in shown[0][1], "flu" in shown[1][1], "gout" in shown[2][1]] == [True] * 3
    with pytest.raises(DataError, match="before the last"):
        engine.insert(visits(["a"], [0], ["flu"], first=7))
    with pytest.raises(DataError, match="not the last"):
        engine.update(visits(["a"], [1], ["gout"], first=1))
    engine.delete(["k0"])
    engine.insert(visits(["a"], [2], ["gout"], first=8))  # the same number is the same fact
    assert sets_of(engine.cut()[0])[8] == shown[0]
    plain = Veil(rules(columns={"key": "identifier"}, evolving={"record": "key"}), rng=Rng.from_seed(1))
    with pytest.raises(DataError, match="already have a record"):
        plain.insert(visits(["a", "a"], [1, 2], ["flu", "gout"]).drop_columns("visit"))
    assert plain.counts.input == 0


@pytest.mark.parametrize(("which", "value"), [("first", "flu"), ("last", "gout")])
def test_the_policy_may_keep_one_record_of_each_person(rules, which, value):
    engine = Veil(rules(person={"column": "id", "records": which}), rng=Rng.from_seed(1))
    row = people(["flu"])
    engine.insert(pa.concat_tables([row, row.set_column(3, "ill", pa.array(["croup"]))]))
    engine.insert(row.set_column(3, "ill", pa.array(["gout"])))
    ((_, candidates),) = sets_of(engine.cut()[0]).values()
    assert engine.counts.input == 1
    assert value in candidates


@pytest.mark.parametrize("door", ["update", "away"])
def test_what_nobody_saw_did_not_happen(rules, evolving, door):
    """Wrong for a moment, put right before the next publication: two steps would show two sets around the truth."""
    policy, rng, n = rules(l=3), np.random.default_rng(7), 400
    store, driver = evolving(policy)
    values = drawn(rng, n)

    def change(values):
        if door == "away":
            driver.delete(people(values).column("id"))
        (driver.update if door == "update" else driver.insert)(people(values))

    with store.lock("evolving"):
        driver.insert(people(moved(rng, values, stay=False)))
        change(values)  # corrected before anybody saw it: a first sight
        shown = [sets_of(driver.publish().release, 3)]
        for _ in range(2):
            change(moved(rng, values, stay=False))
            driver = Evolving(store, policy)  # another process
            change(values)
            shown.append(sets_of(driver.publish().release, 3))
        assert all(event == 0 for event, _ in shown[0].values())
        assert shown[1:] == [shown[0], shown[0]]
        change(moved(rng, values, stay=False))
        later = moved(rng, values, stay=False)
        change(later)  # two changes between publications are one correction
        corrected = sets_of(driver.publish().release, 3)
    assert {event for event, _ in corrected.values()} == {1}
    assert p_value([(shown[0][line][1], corrected[line][1]) for line in range(n)], later) > CHANCE


def test_a_visit_that_nobody_saw_is_made_again(rules, evolving):
    columns = {"visit": "identifier", "key": "identifier"}
    policy = rules(columns=columns, person={"column": "id", "events": "visit"}, evolving={"record": "key"})
    store, driver = evolving(policy)

    def visits(number, values, first):
        records = people(values, first)
        names = {"id": people(values).column("id"), "visit": [number] * len(values), "key": records.column("id")}
        return pa.table({**{name: records.column(name) for name in ("line", "sex", "ill")}, **names})

    rng, n = np.random.default_rng(8), 200
    values = drawn(rng, n)
    later = moved(rng, values, stay=True)
    with store.lock("evolving"):
        driver.insert(visits(1, values, 0))
        driver.publish()
        driver.insert(visits(2, moved(rng, later, stay=False), n))
        driver.update(visits(2, later, n))
        shown = sets_of(driver.publish().release)
    assert all(shown[line][0] == 0 for line in range(n))
    assert all(shown[n + i][0] == 1 and later[i] in shown[n + i][1] for i in range(n))


def test_what_left_before_anybody_saw_it_did_not_happen(tmp_path, rules):
    """Wrong for a moment, and away when the next version is published: two steps around the truth told 78 % of such persons at l = 4."""
    rng, n = np.random.default_rng(9), 300
    values, names = drawn(rng, n), [f"p{i}" for i in range(n)]
    table_ = EvolvingTable(tmp_path / "house.db", rules(l=3))
    table_.insert(people(["flu"], n))
    table_.insert(people(moved(rng, values, stay=False)))
    table_.delete(names)
    table_.publish()  # nobody has seen them yet
    table_.insert(people(values))
    shown = [sets_of(table_.publish(), 3)]
    for wrong_first in (True, False):
        if not wrong_first:
            table_.delete(names)
        (table_.update if wrong_first else table_.insert)(people(moved(rng, values, stay=False)))
        table_.delete(names)
        table_.publish()
        table_.insert(people(values))
        shown.append(sets_of(table_.publish(), 3))
    assert all(event == 0 for event, _ in shown[0].values())
    assert shown[1:] == [shown[0], shown[0]]


def test_visits_that_left_before_anybody_saw_them_are_undone(tmp_path, rules):
    """Two visits that belonged to others, one of them recorded twice: their steps are undone when the last record of them goes."""
    columns = {"visit": "identifier", "key": "identifier"}
    person, l = {"column": "id", "events": "visit"}, 2
    table_ = EvolvingTable(
        tmp_path / "house.db", rules(columns=columns, person=person, evolving={"record": "key"}, l=l)
    )

    def visit(number, values, first):
        records = people(values, first)
        names = {"id": people(values).column("id"), "visit": [number] * len(values), "key": records.column("id")}
        return pa.table({**{name: records.column(name) for name in ("line", "sex", "ill")}, **names})

    def keys(*firsts):
        return [f"p{first + i}" for first in firsts for i in range(n)]

    rng, n = np.random.default_rng(8), 100
    values = drawn(rng, n)
    later = moved(rng, values, stay=True)
    table_.insert(visit(1, values, 0))
    first = sets_of(table_.publish())
    for number, start in ((2, n), (3, 2 * n), (3, 3 * n)):
        table_.insert(visit(number, later, start))
    table_.delete(keys(3 * n))  # its twin is still there
    assert {event for event, _ in sets_of(table_.publish()).values()} == {0, 1, 2}
    table_.insert(visit(4, later, 4 * n))
    table_.insert(visit(5, later, 5 * n))
    table_.delete(keys(4 * n, 5 * n))
    table_.publish()
    table_.insert(visit(4, later, 6 * n))
    last = sets_of(table_.publish())
    assert {last[line][0] for line in range(6 * n, 7 * n)} == {3}
    assert [last[line] for line in range(n)] == [first[line] for line in range(n)]


# -- the judge ---------------------------------------------------------------------------------------------------------------


class Forgetful(Veil):
    """Planted: what is remembered of a person goes with its records."""

    def delete(self, ids, *, by=None):
        change = super().delete(ids, by=by)
        self.person_states = PersonStates(
            self._veiler.parameters.veil(self.rng.veil_key("veil")), self._veiler.parameters.l
        )
        return change


class Resting(Veil):
    """Planted: decoys may stay at a correction."""

    def __init__(self, policy, *, rng):
        super().__init__(policy, rng=rng)
        step = self.person_states._step
        self.person_states._step = lambda some, _, since: step(some, "visit", since)


def judged(policy, engine):
    """Two publications, the values corrected once and everybody away in between."""
    rng = np.random.default_rng(5)
    values, releases, ledger = drawn(rng, 300), [], Ledger()
    engine.insert(people(values))
    for step in range(3):
        if step == 1:
            values = moved(rng, values, stay=False)
            engine.update(people(values))
        if step == 2:
            engine.delete([f"p{i}" for i in range(300)])
            engine.insert(people(values))
        releases += engine.cut()
        cases.enter(ledger, releases[-1], engine.members())
    return [finding.claim for finding in verify(releases, policy, ledger=ledger).refuted]


def test_the_judge_follows_persons_through_corrections_and_returns(rules):
    policy = rules()
    assert judged(policy, Veil(policy, rng=Rng.from_seed(1))) == []
    shown = judged(policy, Forgetful(policy, rng=Rng.from_seed(1)))
    assert "an event shows the same candidates in every publication" in shown
    assert judged(policy, Resting(policy, rng=Rng.from_seed(1))) == [
        "candidates follow the published transition kernel"
    ]


def test_the_judge_notices_rows_and_events_that_change(rules):
    policy = rules()
    engine, ledger = Veil(policy, rng=Rng.from_seed(1)), Ledger()
    engine.insert(people(drawn(np.random.default_rng(1), 30)))
    releases = []
    for _ in range(2):
        releases += engine.cut()
        cases.enter(ledger, releases[-1], engine.members())

    def refuted(column, number):
        data = releases[0].tables["data"]
        cells = [number, *data.column(column).to_pylist()[1:]]
        altered = data.set_column(data.column_names.index(column), column, pa.array(cells))
        changed = [replace(releases[0], tables={"data": altered}), releases[1]]
        return [finding.claim for finding in verify(changed, policy, ledger=ledger).refuted]

    assert refuted("line", 99) == []
    assert "every person keeps their stratum of the prior" in refuted("stratum", 7)
    assert "events of a person are published in order" in refuted("event", 3)
    short = Ledger(ledger.entries, [ledger.persons[0][1:], ledger.persons[1]], [ledger.groups[0][1:], ledger.groups[1]])
    claims = [finding.claim for finding in verify(releases, policy, ledger=short).refuted]
    assert claims == ["the ledger lists every veiled record once"]
    other = replace(releases[1], metadata={"veil": releases[1].metadata["veil"] | {"permutations": [[3, 2, 1, 0]]}})
    assert "all publications have the same veil parameters" in [
        f.claim for f in verify([releases[0], other], policy).refuted
    ]
