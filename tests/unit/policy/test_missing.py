"""`missing:` in a policy: a declared marker is a missing cell in every interface."""

import json

import pyarrow as pa
import pytest

import reticent
from reticent.connectors.inputs import count_values, read_input
from reticent.engine.identifiers import prepare
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.publication.records import RecordReader

COLUMNS = {"who": "identifier", "age": {"role": "quasi", "hierarchy": {"intervals": [10, 40]}}, "ill": "sensitive"}
POLICY = Policy(person="who", columns=COLUMNS, missing=["?", -9], privacy={"k": 2})
ROWS = [("a", "31", "flu"), ("b", "-9", "?"), ("?", "40", "cold")]
TABLE = pa.table({name: [row[at] for row in ROWS] for at, name in enumerate(COLUMNS)})
CLEAN = [["a", "b", None], ["31", None, "40"], ["flu", None, "cold"]]


def cells(table):
    return [column.to_pylist() for column in table.columns]


def test_tables_and_files(tmp_path):
    assert cells(prepare(TABLE, POLICY)) == CLEAN
    (tmp_path / "data.csv").write_text("who,age,ill\n" + "".join(",".join(row) + "\n" for row in ROWS))
    assert cells(read_input(str(tmp_path / "data.csv"), POLICY)) == CLEAN
    assert count_values(str(tmp_path / "data.csv"), "ill", POLICY.missing) == {"flu": 1, None: 1, "cold": 1}


def test_numbers_are_known_by_their_text():
    table = pa.table({"x": [31, -9], "y": [1.5, -9.0], "day": pa.array([1, 2], pa.date32()), "none": [None, None]})
    clean = without_markers(table, ["-9"])
    assert cells(clean)[:2] == [[31, None], [1.5, None]]
    assert clean.schema == table.schema
    assert without_markers(table, ["?"]) is table


@pytest.mark.parametrize("form", ["ndjson", "objects", "table", "text"])
def test_records_of_a_stream(form):
    reader = RecordReader(POLICY)
    lines = [json.dumps(dict(zip(COLUMNS, row, strict=True))).encode() for row in ROWS]
    if form == "ndjson":
        batch = reader.ndjson(b"\n".join(lines))
    elif form == "objects":
        batch = reader.objects(lines)
    else:
        batch = reader.table(TABLE) if form == "table" else reader.text(TABLE, pa.array([0, 1, 2]).to_numpy(), 3)
    assert cells(batch.table) == [column[:2] for column in CLEAN]
    assert [bad.reason for bad in batch.rejected] == ["no person"]


def test_a_number_in_json_is_a_marker_too():
    reader = RecordReader(POLICY)
    assert reader.objects([b'{"who": "a", "age": -9, "ill": "flu"}']).table.to_pylist() == [
        {"who": "a", "age": None, "ill": "flu"}
    ]


def test_a_release_with_markers_holds_against_its_original():
    rows = pa.table({"who": [str(i) for i in range(40)], "age": ["?", "30", "41", "-9"] * 10, "ill": ["flu", "?"] * 20})
    release = reticent.anonymize(rows, POLICY)
    ages = release.to_arrow().column("age").to_pylist()
    assert "?" not in ages
    assert None in ages
    assert reticent.verify(release, POLICY, original=rows).holds


def test_what_is_no_list_of_words_is_refused():
    assert Policy(columns=COLUMNS, missing="?").missing == ("?",)
    assert Policy.from_yaml(POLICY.to_yaml()) == POLICY
    with pytest.raises(PolicyError, match="list of words"):
        Policy(columns=COLUMNS, missing={"age": "?"})


def test_a_policy_without_markers_keeps_its_hash():
    assert Policy(columns=COLUMNS).hash == Policy(columns=COLUMNS, missing=[]).hash
    assert Policy(columns=COLUMNS).hash != Policy(columns=COLUMNS, missing=["?"]).hash
