"""One ledger for a population: the same persons in two publications of a store are noticed, whatever the kinds."""

import json
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from cases import PRIOR
from store_scenes import BASE, COLUMNS, EvolvingScene, SeriesScene, StreamScene, ndjson, people

from reticent import EvolvingTable, Series, anonymize
from reticent.cli import main
from reticent.connectors.shards import claim_population
from reticent.connectors.stream import Stream
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.publication.population import summarize_publications
from reticent.release.wording import REPUBLICATION
from reticent.store import Store, schema

ANATOMY = Policy.from_dict(BASE | {"privacy": {"l": 3, "suppression": 0.2}, "table": {"method": "anatomy"}})
SHARED = "people were already released from this store"


def table(where, persons, **settings):
    return anonymize(persons, ANATOMY, store=where, **settings)


def stream(where, persons, **settings):
    with Stream(StreamScene.policy, store=where, **settings) as feed:
        feed.push(ndjson(persons))
        return feed.summary()


def evolving(where, persons, **settings):
    changing = EvolvingTable(where, EvolvingScene.policy)
    changing.insert(persons)
    return changing.publish(**settings)


def series(where, persons, **settings):
    return Series(where, SeriesScene.policy, **settings).publish(persons)


KINDS = {"table": table, "stream": stream, "evolving": evolving, "series": series}


@pytest.mark.parametrize(("first", "second"), list(permutations(KINDS, 2)))
def test_the_same_persons_are_refused_in_another_publication(first, second, tmp_path):
    where = tmp_path / "store.db"
    KINDS[first](where, people(0, 80))
    with pytest.raises(GuaranteeError, match=f"1 of 80 {SHARED}"):
        KINDS[second](where, people(79, 80))
    with Store.open(where) as store:
        assert list(summarize_publications(store)) == [name for name in store.publishers() if name.startswith(first)]


@pytest.mark.parametrize("nobody", [None, "", " ", chr(0x200B)])
def test_rows_of_nobody_are_no_person_whom_two_publications_share(nobody, tmp_path):
    policy = Policy.from_dict(
        {
            "version": 1,
            "person": "who",
            "columns": {"who": "identifier", "sex": "quasi", "ill": "sensitive"},
            "privacy": {"k": 2, "l": 2},
            "tables": {
                "people": {"person": "who", "key": "who", "columns": ["sex"]},
                "visits": {"person": "who", "columns": ["ill"]},
            },
        }
    )
    for first in (0, 40):
        names = [f"p{first + i}" for i in range(40)]
        visits = pa.table({"who": [*names, nobody], "ill": ["abcd"[i % 4] for i in range(41)]})
        tables = {"people": pa.table({"who": names, "sex": ["F", "M"] * 20}), "visits": visits}
        anonymize(tables, policy, store=tmp_path / "store.db")
    with pytest.raises(GuaranteeError, match=f"40 of 40 {SHARED}"):
        anonymize(tables | {"visits": visits.slice(1)}, policy, store=tmp_path / "store.db")


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_with_allowed_republication_says_so(kind, tmp_path):
    other = "stream" if kind == "table" else "table"
    KINDS[other](tmp_path / "store.db", people(0, 80))
    release = KINDS[kind](tmp_path / "store.db", people(40, 80), allow_republication=True)
    assert REPUBLICATION in release.guarantee.not_covered


def test_strangers_are_let_in_and_counted(tmp_path, capsys):
    where = tmp_path / "store.db"
    table(where, people(0, 80))
    stream(where, people(80, 40))
    stream(where, people(100, 40))
    with pytest.raises(SystemExit) as ended:
        main(["ledger", str(where), "--json"])
    assert not ended.value.code
    seen = json.loads(capsys.readouterr().out)
    assert {name: (about["persons"], about["elsewhere"]) for name, about in seen.items()} == {
        "table-1": (80, 0),
        "stream": (60, 0),
    }
    with Store.open(where) as store:
        rows = store.rows(schema.population, schema.population.c.id > 0, order_by=schema.population.c.id)
    assert [len(row["persons"]) for row in rows] == [80 * 8, 40 * 8, 20 * 8]


def test_the_same_table_again_is_the_stored_release(tmp_path):
    one, two = (table(tmp_path / "store.db", people(0, 80)) for _ in range(2))
    assert one.tables == two.tables
    assert one.store == two.store
    with pytest.raises(GuaranteeError, match=SHARED):
        table(tmp_path / "store.db", people(0, 81))


def test_veils_of_one_parameter_set_compose(tmp_path):
    prior = {"file": str(PRIOR), "by": ["sex"]}
    rules = BASE | {"columns": COLUMNS, "privacy": {"l": 3}, "prior": prior}
    rows = people(0, 60)
    rows = rows.set_column(4, "ill", [[value.replace("7", "6") for value in rows.column("ill").to_pylist()]])
    once = Policy.from_dict(rules | {"table": {"method": "veil"}, "series": {"method": "veil"}})
    anonymize(rows, once, store=tmp_path / "store.db")
    Series(tmp_path / "store.db", once).publish(rows)
    with Store.open(tmp_path / "store.db") as store:
        assert [about["elsewhere"] for about in summarize_publications(store).values()] == [60, 60]
    with pytest.raises(GuaranteeError, match=SHARED):
        table(tmp_path / "store.db", people(0, 80))


def test_a_publication_that_came_in_between_is_noticed(tmp_path):
    """Both looked before either published."""
    where = tmp_path / "store.db"
    with Stream(StreamScene.policy, store=where) as feed:
        table(where, people(0, 80))
        with pytest.raises(GuaranteeError, match=SHARED):
            feed.push(ndjson(people(0, 10)))
    with Store.open(where) as store:
        assert not list(store.outbox("stream"))


def veiled(where, ills, kind="table", policy=None):
    """Sixty persons with given illnesses, published by one kind under one parameter set."""
    rows = people(0, 60)
    rows = rows.set_column(4, "ill", [ills])
    if kind == "table":
        return anonymize(rows, policy or veil_policy(), store=where)
    if kind == "series":
        return Series(where, policy or veil_policy()).publish(rows)
    changing = EvolvingTable(where, policy or veil_policy())
    if changing.status()["publications"]:
        changing.update(rows)
    else:
        changing.insert(rows)
    return changing.publish()


def veil_policy(**more):
    methods = {kind: {"method": "veil"} for kind in ("table", "evolving", "series")}
    prior = {"file": str(PRIOR), "by": ["sex"]}
    return Policy.from_dict(BASE | {"columns": COLUMNS, "privacy": {"l": 3}, "prior": prior} | methods | more)


def illnesses(changed=0):
    """The same values, but for the first persons."""
    ills = [value.replace("7", "6") for value in people(0, 60).column("ill").to_pylist()]
    others = [next(value for value in sorted(set(ills)) if value != ill) for ill in ills]
    return others[:changed] + ills[changed:]


def test_a_table_and_ten_publications_of_an_evolving_table_show_the_same(tmp_path):
    where = tmp_path / "store.db"
    shown = [veiled(where, illnesses(), "table")]
    shown += [veiled(where, illnesses(), "evolving") for _ in range(10)]
    rows = [sorted(map(str, release.tables["data"].to_pylist())) for release in shown]
    assert rows == [rows[0]] * 11


def test_a_value_corrected_elsewhere_is_not_veiled_anew(tmp_path):
    """The evolving table has moved a person's slots; a fresh veil over the new value would show what both have in common."""
    where = tmp_path / "store.db"
    veiled(where, illnesses(), "evolving")
    veiled(where, illnesses(changed=5), "evolving")
    with pytest.raises(
        GuaranteeError, match=r"[1-5] of 60 people were already released from this store with the same veil key"
    ):
        veiled(where, illnesses(changed=5), "table")
    veiled(where, illnesses(), "table")


def test_a_table_with_another_value_is_refused(tmp_path):
    where = tmp_path / "store.db"
    veiled(where, illnesses())
    with pytest.raises(GuaranteeError, match=r"[1-5] of 60"):
        veiled(where, illnesses(changed=5))


def test_two_publications_never_move_the_same_person(tmp_path):
    """False candidates move alike in both: where the true values differ, the difference would be the true value."""
    where = tmp_path / "store.db"
    veiled(where, illnesses(), "evolving")
    veiled(where, illnesses(), "series")
    veiled(where, illnesses(), "series")
    with pytest.raises(GuaranteeError, match=r"[1-5] of 60"):
        veiled(where, illnesses(changed=5), "evolving")


def moving(tmp_path):
    """A parameter set with a kernel."""
    ills = sorted(set(illnesses()))
    (tmp_path / "kernel.csv").write_text("value,stay,within\n" + "".join(f"{ill},0.5,0.0\n" for ill in ills))
    prior = {"file": str(PRIOR), "by": ["sex"], "kernel": {"file": str(tmp_path / "kernel.csv")}}
    return veil_policy(prior=prior)


@pytest.mark.parametrize("other", ["table", "evolving"])
def test_a_series_that_moves_shares_nobody(tmp_path, other):
    """False candidates have moved in the series; a person who is shown elsewhere as at the start still has the first value: 51% found at l = 4."""
    for first, second in (("series", other), (other, "series")):
        where, rules = tmp_path / f"{first}.db", moving(tmp_path)
        veiled(where, illnesses(), first, rules)
        with pytest.raises(GuaranteeError, match="60 of 60 people were already released"):
            veiled(where, illnesses(), second, rules)
        # A series goes on as its kernel says, which lets half of the values stay.
        veiled(where, illnesses(changed=30 if first == "series" else 0), first, rules)


def test_who_was_moved_is_shown_nowhere_else(tmp_path):
    """Not even with the value of the beginning, which would tell that it is the same again."""
    where, rules = tmp_path / "store.db", moving(tmp_path)
    veiled(where, illnesses(), "table", rules)
    veiled(where, illnesses(), "evolving", rules)
    veiled(where, illnesses(changed=5), "evolving", rules)
    rows = people(0, 61).slice(0, 59).set_column(4, "ill", [illnesses()[:59]])
    with pytest.raises(GuaranteeError, match="5 of 59 people were already released"):
        anonymize(rows, rules, store=where)


def test_persons_are_recorded_once_whatever_memory_holds(tmp_path, monkeypatch):
    """Persons whose places in memory are taken by others were recorded again without their events, and composed with nothing."""
    monkeypatch.setattr("reticent.publication.population._CACHE_MASK", np.uint64(7))
    where = tmp_path / "store.db"
    for _ in range(3):
        veiled(where, illnesses(), "evolving")
    veiled(where, illnesses(), "table")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_on_many_machines_takes_everybody(kind, tmp_path):
    """Workers of Kafka and Spark do not show their persons to the ledger: nobody else is published with them unnoticed."""
    where = tmp_path / "store.db"
    with Store.open(where) as store:
        store.register("kafka feed workers", policy_hash=StreamScene.policy.hash)
        assert not claim_population(StreamScene.policy, store, "kafka feed workers")
        assert not claim_population(StreamScene.policy, store, "kafka feed workers")  # the next worker
        assert summarize_publications(store)["kafka feed workers"]["everybody"]
    with pytest.raises(GuaranteeError, match=f"80 of 80 {SHARED}"):
        KINDS[kind](where, people(0, 80))


def test_a_stream_on_many_machines_does_not_start_next_to_others(tmp_path):
    table(tmp_path / "store.db", people(0, 80))
    with Store.open(tmp_path / "store.db") as store:
        store.register("spark", policy_hash=StreamScene.policy.hash)
        with pytest.raises(GuaranteeError, match="has other publications"):
            claim_population(StreamScene.policy, store, "spark")
        assert claim_population(StreamScene.policy, store, "spark", allow_republication=True)
        assert {name: about["elsewhere"] for name, about in summarize_publications(store).items()} == {
            "table-1": 80,
            "spark": 0,
        }


ILLS = "value,count\n" + "".join(f"{value},10\n" for value in sorted(set(people(0, 80).column("ill").to_pylist())))


def nameless(folder, prior=ILLS):
    """A policy that names nobody."""
    (folder / "prior.csv").write_text(prior)
    columns = {"line": "plain", "ill": "sensitive"}
    document = {"version": 1, "columns": columns, "privacy": {"l": 3}, "prior": {"file": "prior.csv"}}
    return Policy.from_dict(document | {"table": {"method": "veil"}}, base=folder)


def test_a_veil_over_nobody_in_particular_stands_alone(tmp_path):
    """One row less makes another table, veiled anew: what both had in common was the true value of 479 of 490 persons."""
    rows = people(0, 60).select(["line", "ill"])
    first = anonymize(rows, nameless(tmp_path), store=tmp_path / "store.db")
    again = anonymize(rows, nameless(tmp_path), store=tmp_path / "store.db")
    assert again.tables["data"].equals(first.tables["data"])
    with pytest.raises(GuaranteeError, match="policy has no `person:`"):
        anonymize(rows.slice(1), nameless(tmp_path), store=tmp_path / "store.db")
    with pytest.raises(GuaranteeError, match=SHARED):
        table(tmp_path / "store.db", people(0, 80))
    table(tmp_path / "other.db", people(0, 80))
    with pytest.raises(GuaranteeError, match="policy has no `person:`"):
        anonymize(rows, nameless(tmp_path), store=tmp_path / "other.db")
    shown = anonymize(rows, nameless(tmp_path), store=tmp_path / "other.db", allow_republication=True)
    assert REPUBLICATION in shown.guarantee.not_covered


def test_an_attempt_that_was_refused_pins_no_parameter_set(tmp_path):
    """Its hint asks for another prior; under the store it began with the other one must be welcome, until something is published."""
    rows, where = people(0, 60).select(["line", "ill"]), tmp_path / "store.db"
    with pytest.raises(GuaranteeError, match="not among their candidates"):
        anonymize(rows, nameless(tmp_path, "value,count\nother things,1\nmore,1\nstill more,1\n"), store=where)
    assert anonymize(rows, nameless(tmp_path), store=where).records.published == rows.num_rows
    with pytest.raises(PolicyError, match="another l, prior, kernel, value domain or household"):
        anonymize(rows, nameless(tmp_path, ILLS + "one more,1\n"), store=where)


def candidates(published):
    """What one publication leaves possible for each person, whom the reader knows by the line that is released as it is."""
    if isinstance(published, bytes):
        lines = [json.loads(line) for line in published.splitlines()]
        groups = {
            line["group"]: {value for value, _ in line["candidates"]} for line in lines if line["type"] == "group"
        }
        return {line["plain"]["line"]: groups[line["group"]] for line in lines if line["type"] == "tuple"}
    tables = published.tables
    if "st" in tables:
        groups = {}
        for row in tables["st"].to_pylist():
            groups.setdefault(row["group"], set()).add(row["value"])
        return {row["line"]: groups[row["group"]] for row in tables["qit"].to_pylist()}
    return {row["line"]: {row[f"ill_{slot}"] for slot in (1, 2, 3)} for row in tables["data"].to_pylist()}


def intersected(*published):
    """Of the joint intersection attack: how many candidates are left of each person."""
    left = {}
    for one in published:
        for person, values in candidates(one).items():
            left[person] = left.get(person, values) & values
    return {person: len(values) for person, values in left.items()}


def test_the_joint_intersection_attack_finds_nobody_whom_the_ledger_let_through(tmp_path):
    """Table, evolving table (three times) and series of the same sixty persons under one parameter set; a stream of them is refused."""
    where = tmp_path / "store.db"
    shown = [veiled(where, illnesses(), "table"), *(veiled(where, illnesses(), "evolving") for _ in range(3))]
    shown += [veiled(where, illnesses(), "series")]
    with pytest.raises(GuaranteeError, match=SHARED):
        stream(where, people(0, 60))
    left = intersected(*shown)
    assert len(left) == 60
    assert min(left.values()) == 3


def test_the_joint_intersection_attack_finds_many_where_the_ledger_is_overridden(tmp_path):
    """A table and a stream of the same persons, each fine alone: what the ledger is for."""
    where = tmp_path / "store.db"
    first = table(where, people(0, 80))
    with Stream(StreamScene.policy, store=where, allow_republication=True) as feed:
        second = feed.push(ndjson(people(0, 80)))
    left = intersected(first, second)
    assert min(intersected(first).values()) >= 3
    assert min(intersected(second).values()) >= 3
    assert sum(count == 1 for count in left.values()) > 5
