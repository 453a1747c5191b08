"""Linked tables: links and spans are kept, rows that cannot be linked are suppressed, nothing beyond the policy gets through."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import reticent
from reticent import Policy, Release, Series, anonymize, verify
from reticent.cli import app
from reticent.engine import publisher
from reticent.engine.linked.rows import people_of
from reticent.engine.rng import Rng
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.publication.population import summarize_publications
from reticent.release.wording import REPUBLICATION
from reticent.store import Store

DATES = {"dates": ["day", "month", "year"]}
RULES = {
    "version": 1,
    "person": "pid",
    "tables": {
        "patients": {"person": "pid", "key": "pid", "columns": ["sex"]},
        "visits": {"person": "pid", "visit": "visit", "key": "visit", "columns": ["start", "end"]},
        "diagnoses": {"person": "pid", "visit": "visit", "columns": ["diagnosis"]},
    },
    "columns": {
        "pid": "identifier",
        "sex": "quasi",
        "start": {"role": "quasi", "hierarchy": DATES, "transform": {"shift": 30}},
        "end": {"role": "quasi", "hierarchy": DATES, "transform": {"shift": 30}},
        "diagnosis": "sensitive",
    },
    "privacy": {"k": 2},
}
POLICY = Policy.from_dict(RULES)


def tables(people=6):
    ids = [f"x{i}" for i in range(people)]
    first = [dt.date(2024, 3, 1) + dt.timedelta(i) for i in range(people)]
    return {
        "patients": pa.table({"pid": ids, "sex": ["f"] * people}),
        "visits": pa.table(
            {
                "pid": ids * 2,
                "visit": [f"{i}-{n}" for n in (0, 1) for i in ids],
                "start": [str(day + dt.timedelta(40 * n)) for n in (0, 1) for day in first],
                "end": [str(day + dt.timedelta(40 * n + 3)) for n in (0, 1) for day in first],
            }
        ),
        "diagnoses": pa.table(
            {
                "pid": ids * 2,
                "visit": [f"{i}-{n}" for n in (0, 1) for i in ids],
                "diagnosis": [f"D{i}" for i in range(2 * people)],
            }
        ),
    }


def test_links_are_kept_and_pseudonyms_are_new():
    releases = [anonymize(tables(), POLICY) for _ in range(2)]
    for release in releases:
        home = dict(zip(*(release.tables["visits"][name].to_pylist() for name in ("visit", "person")), strict=True))
        true = {f"D{i}": i % 6 for i in range(12)}
        persons = {}
        for row in release.tables["diagnoses"].to_pylist():
            assert home[row["visit"]] == row["person"]
            assert persons.setdefault(row["person"], true[row["diagnosis"]]) == true[row["diagnosis"]]
        assert len(set(persons.values())) == 6
    ways = [
        tuple(sorted((row["diagnosis"], row["person"]) for row in release.tables["diagnoses"].to_pylist()))
        for release in releases
    ]
    assert ways[0] != ways[1]
    assert anonymize(tables(), POLICY, seed=1).seeded


def test_all_dates_of_a_person_move_together():
    people = people_of(tables(), POLICY, b"key")
    visits = people.tables["visits"]
    spans, moved = set(), set()
    for row in range(12):
        start, end = (
            visits.columns[name].values[int(visits.columns[name].codes[row])].as_py() for name in ("start", "end")
        )
        spans.add((end - start).days)
        moved.add((start - dt.date(2024, 3, 1)).days)
    first = visits.columns["start"]
    days = [first.values[int(code)].as_py() for code in first.codes]
    gaps = {(days[2 * i + 1] - days[2 * i]).days for i in range(6)}
    assert spans == {3}
    assert gaps == {40}
    assert len(moved) > 2


def test_rows_that_cannot_be_linked_are_suppressed_and_counted():
    data = tables()
    data["diagnoses"] = pa.concat_tables(
        [
            data["diagnoses"],
            pa.table(
                {
                    "pid": ["x1", None, "nobody", "x1"],
                    "visit": ["x2-0", "x1-0", "x1-0", "nowhere"],
                    "diagnosis": ["bad1", "bad2", "bad3", "loose"],
                }
            ),
        ]
    )
    data["patients"] = pa.concat_tables([data["patients"], pa.table({"pid": ["x1", None], "sex": ["m", "m"]})])
    people = people_of(data, POLICY, b"key")
    assert people.suppressed == {
        "patients: with a repeated key, suppressed": 1,
        "patients: without a person, suppressed": 1,
        "diagnoses: without a person, suppressed": 2,
        "diagnoses: of an unknown visit, released without the visit": 1,
        "diagnoses: of a visit of another person, or of a suppressed visit, suppressed": 1,
    }
    release = anonymize(data, POLICY)
    assert not set(release.tables["diagnoses"]["diagnosis"].to_pylist()) & {"bad1", "bad2", "bad3"}
    assert release.records.input == sum(table.num_rows for table in data.values())
    assert verify(release, POLICY).holds


def test_markers_are_missing_cells():
    data = tables()
    data["patients"] = data["patients"].set_column(1, "sex", pa.array(["f", "f", "f", "f", "?", "?"]))
    data["diagnoses"] = data["diagnoses"].set_column(
        0, "pid", pa.array(["?", *data["diagnoses"]["pid"].to_pylist()[1:]])
    )
    release = anonymize(data, Policy.from_dict(RULES | {"missing": ["?"]}))
    assert set(release.tables["patients"]["sex"].to_pylist()) == {"f", None}
    assert "D0" not in release.tables["diagnoses"]["diagnosis"].to_pylist()


def test_most_rows_of_a_person_take_their_visits_along():
    rules = RULES | {"tables": {"tables": RULES["tables"], "rows": {"visits": 1}}}
    release = anonymize(tables(), Policy.from_dict(rules))
    assert release.tables["visits"].num_rows == release.tables["diagnoses"].num_rows == 6
    assert set(release.tables["diagnoses"]["diagnosis"].to_pylist()) == {f"D{i}" for i in range(6)}


def test_courses_are_cut_to_what_a_class_has_in_common():
    data = tables(4)
    data["visits"] = data["visits"].slice(0, 6)  # x2 and x3 came once
    data["diagnoses"] = data["diagnoses"].slice(0, 6)
    policy = Policy.from_dict(RULES | {"privacy": {"k": 4}})
    assert anonymize(data, policy).tables["visits"].num_rows == 4
    assert anonymize(data, POLICY).tables["visits"].num_rows == 6


def test_rows_weigh_as_the_policy_says():
    data = tables(24)
    data["patients"] = data["patients"].set_column(1, "sex", pa.array(["f", "m"] * 12))
    few = 24 + 8
    data["visits"], data["diagnoses"] = data["visits"].slice(0, few), data["diagnoses"].slice(0, few)
    kept = {}
    for weight in (0.1, 10):
        rules = {"tables": {"tables": RULES["tables"], "row_weight": weight}, "privacy": {"k": 8}}
        release = anonymize(data, Policy.from_dict(RULES | rules), seed=1)
        kept[weight] = (release.tables["visits"].num_rows, release.tables["patients"]["sex"].to_pylist().count("*"))
    assert kept[10][0] > kept[0.1][0]
    assert kept[10][1] > kept[0.1][1]


def test_a_value_of_too_many_is_refused():
    data = tables()
    data["diagnoses"] = data["diagnoses"].set_column(2, "diagnosis", pa.array(["D1"] * 12))
    with pytest.raises(GuaranteeError, match=r"1/2 of the 6 persons .* of diagnosis"):
        anonymize(data, Policy.from_dict(RULES | {"privacy": {"k": 2, "l": 2}}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"person": None}, "write person: COLUMN"),
        ({"privacy": {"t": 0.1}}, "support only k"),
        ({"person": {"column": "pid", "records": "first"}}, "records must be all"),
        ({"columns": RULES["columns"] | {"other": "quasi"}}, "'other' is in no table"),
        ({"columns": RULES["columns"] | {"end": {"role": "quasi", "transform": {"shift": 3}}}}, "the same shift"),
        ({"tables": RULES["tables"] | {"x": {"person": "pid", "columns": ["sex"]}}}, "two tables"),
        (
            {"tables": {"a": {"person": "pid", "visit": "v", "columns": ["sex", "start", "end", "diagnosis"]}}},
            "table of visits",
        ),
        ({"tables": {"mapping": "omop", "schema": "a b"}}, "plain name"),
        ({"privacy": {}}, "no requirement"),
        ({"privacy": {"k": 2, "average_risk": 0.1}}, "average_risk: only table methods"),
    ],
)
def test_policies_that_do_not_fit_are_refused(change, words):
    with pytest.raises(PolicyError, match=words):
        anonymize(tables(), Policy.from_dict({k: v for k, v in (RULES | change).items() if v is not None}))


def test_other_interfaces_refuse_linked_tables(tmp_path):
    with pytest.raises(PolicyError, match="linked tables"):
        publisher(POLICY, "table", "optimal", rng=Rng.from_seed(1))
    with pytest.raises(PolicyError, match="linked tables"):
        Series(tmp_path / "s.db", POLICY).publish(tables()["patients"])
    with pytest.raises(PolicyError, match="one method"):
        anonymize(tables(), POLICY, method="optimal")
    with pytest.raises(DataError, match="'visits' is missing"):
        anonymize({"patients": tables()["patients"]}, POLICY)


def test_a_store_remembers_whom_linked_tables_were_about(tmp_path):
    first, again = (anonymize(tables(), POLICY, store=tmp_path / "s.db") for _ in range(2))
    assert first.tables == again.tables
    assert first.store == again.store
    fewer = {name: table.slice(0, table.num_rows - 1) for name, table in tables().items()}
    with pytest.raises(GuaranteeError, match="already released from this store"):
        anonymize(fewer, POLICY, store=tmp_path / "s.db")
    republished = anonymize(fewer, POLICY, store=tmp_path / "s.db", allow_republication=True)
    assert REPUBLICATION in republished.guarantee.not_covered
    with Store.open(tmp_path / "s.db") as store:
        assert [about["method"] for about in summarize_publications(store).values()] == ["linked", "linked"]
    assert b"x1-0" not in (tmp_path / "s.db").read_bytes()


def test_files_in_and_a_folder_out(tmp_path):
    for name, table in tables().items():
        more = table.append_column("name", pa.array(["canary-31"] * table.num_rows))
        pa.csv.write_csv(more, tmp_path / f"{name}.csv")
    (tmp_path / "policy.json").write_text(json.dumps(RULES))
    out, policy = tmp_path / "out", str(tmp_path / "policy.json")
    runner = CliRunner()
    result = runner.invoke(app, ["anonymize", str(tmp_path), "-p", policy, "-o", str(out), "--json"])
    assert result.exit_code == 0, result.output
    assert "Rows: 6 of 6 patients, 12 of 12 visits, 12 of 12 diagnoses" in result.output
    assert runner.invoke(app, ["verify", str(out), "-p", policy]).exit_code == 0
    assert {file.name for file in out.iterdir()} == {
        *("patients.csv", "visits.csv", "diagnoses.csv", "linked.json", "codebook.json", "README.txt", "release.json")
    }
    assert not [file for file in out.iterdir() if b"canary" in file.read_bytes() or b'"x1' in file.read_bytes()]
    assert Release.from_dir(out).shape == "linked"
    (out / "visits.csv").write_text((out / "visits.csv").read_text().replace("2024", "2023"))
    assert runner.invoke(app, ["verify", str(out), "-p", policy]).exit_code == 4


def test_a_recipient_asks_linked_tables_as_one(tmp_path):
    data = tables(24)
    data["patients"] = data["patients"].set_column(1, "sex", pa.array(["f", "m"] * 12))
    data["diagnoses"] = data["diagnoses"].set_column(2, "diagnosis", pa.array([f"D{i % 5}" for i in range(48)]))
    release = anonymize(data, POLICY)
    release.to_dir(tmp_path / "out")
    received = reticent.read(tmp_path / "out")
    women = [i for i in range(48) if i % 24 % 2 == 0 and i % 5 == 1]
    answer = received.count("D1", where="sex == 'f'")
    assert answer.low <= len(women) <= answer.high
    whole = received.count("D1")
    assert whole.low <= len([i for i in range(48) if i % 5 == 1]) <= whole.high
    with pytest.raises(PolicyError, match="No table has the sensitive column"):
        reticent.read(tmp_path / "out", sensitive="other")
