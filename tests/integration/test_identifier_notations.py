"""A person who is written in another way is the same person: through every interface, in the veil and in the ledger."""

import csv
import json

import pyarrow as pa
import pytest

from reticent import EvolvingTable, Series, anonymize
from reticent.cli import main
from reticent.connectors.stream import Stream
from reticent.encode.columns import normalize_names
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.errors import DataError, GuaranteeError
from reticent.policy import Policy

VALUES = [f"v{v:02d}" for v in range(20)]
N, L = 60, 4
NOTATIONS = {
    "space": " {}",
    "behind": "{}  ",
    "float": "{}.0",
    "no-break": "{}\u00a0",
    "invisible": "\u200b{}",
    "full width": "{}",
    "control": "{}\x7f",
    "joiner of marks": "{}\u034f",
}


def written(notation: str, number: int) -> str:
    word = NOTATIONS[notation].format(number)
    return word.translate({ord("0") + d: 0xFF10 + d for d in range(10)}) if notation == "full width" else word


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{value},5\n" for value in VALUES))
    columns = {"id": "identifier", "line": "plain", "ill": "sensitive"}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": L}, "prior": {"file": "prior.csv"}}
    (tmp_path / "policy.json").write_text(json.dumps(rules | {"table": {"method": "veil"}}))
    return Policy.load(tmp_path / "policy.json")


def people(ids) -> pa.Table:
    lines = range(len(ids))
    return pa.table({"id": ids, "line": list(lines), "ill": [VALUES[i * 7 % 20] for i in lines]})


def sets(release):
    rows = release.tables["data"].to_pylist()
    return {row["line"]: tuple(row[f"ill_{slot + 1}"] for slot in range(L)) for row in rows}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_another_notation_shows_the_same_candidates(policy, tmp_path, notation):
    """As two persons they showed two sets with the true value in common: 77 % found at l = 4."""
    store = tmp_path / "veil.db"
    first = sets(anonymize(people(list(range(N))), policy, store=store))
    other = people([written(notation, i) for i in range(N)])
    assert sets(anonymize(other, policy, store=store)) == first
    changing = EvolvingTable(store, policy)
    changing.insert(other)
    assert sets(changing.publish()) == first
    assert sets(Series(store, policy).publish(other)) == first


@pytest.mark.parametrize("notation", NOTATIONS)
def test_the_command_line_reads_them_alike(policy, tmp_path, notation, capsys):
    shown = []
    for number, ids in enumerate([[str(i) for i in range(N)], [written(notation, i) for i in range(N)]]):
        data, out = tmp_path / f"{number}.csv", tmp_path / f"out {number}"
        with data.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, quoting=csv.QUOTE_ALL)
            lines.writerow(["id", "line", "ill"])
            lines.writerows(map(dict.values, people(ids).to_pylist()))
        with pytest.raises(SystemExit) as done:
            main(
                [
                    "anonymize",
                    *map(str, [data, "-p", tmp_path / "policy.json", "-o", out, "--store", tmp_path / "h.db"]),
                ]
            )
        assert not done.value.code, capsys.readouterr().err
        with (out / "data.csv").open(encoding="utf-8") as file:
            shown.append({row["line"]: [row[f"ill_{slot + 1}"] for slot in range(L)] for row in csv.DictReader(file)})
    assert shown[0] == shown[1]


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_person_who_returns_to_a_stream_is_known(policy, tmp_path, notation):
    rows = people(list(range(N))).to_pylist() + people([written(notation, i) for i in range(N)]).to_pylist()
    with Stream(policy, store=tmp_path / "s.db") as stream:
        lines = [
            json.loads(line) for line in stream.push("".join(json.dumps(r) + "\n" for r in rows).encode()).splitlines()
        ]
        alone = [json.loads(stream.push(json.dumps(row).encode())) for row in rows[N : N + 3]]
    assert [line["event"] for line in lines] == [0] * N + [1] * N
    assert [line["event"] for line in alone] == [2] * 3
    assert all(a["candidates"] == b["candidates"] for a, b in zip(lines[:N], lines[N:], strict=True))
    with pytest.raises(GuaranteeError, match="already released from this store"):
        anonymize(people([written(notation, i) for i in range(N)]), policy, store=tmp_path / "s.db")


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_an_engine_of_streams_knows_them_in_every_batch(policy, notation, kind):
    """It took the names of later batches as they were written."""
    engine = publisher_class("stream", "veil")(policy, rng=Rng.from_seed(1))
    first, other = people([str(i) for i in range(N)]), people([written(notation, i) for i in range(N)])
    for event, table in enumerate((first, other, first, other.slice(3, 1))):
        (release,) = engine.push(table.set_column(0, "id", table.column("id").cast(kind)))
        assert set(release.tables["data"].column("event").to_pylist()) == {event}
    assert release.metrics["persons"] == N


def test_an_engine_of_streams_reads_markers_in_every_batch(policy):
    marked = Policy.from_dict(policy.to_dict() | {"missing": ["?"]}, base=policy.base)
    for method in ("veil", "delay-free"):
        engine = publisher_class("stream", method)(marked, rng=Rng.from_seed(1))
        for _ in range(2):
            (release,) = engine.push(people(["1"]).set_column(1, "line", pa.array(["?"])))
            table = release.tables["data" if method == "veil" else "tuple"]
            assert table.column("line").to_pylist() == [None]


@pytest.mark.parametrize("kind", [pa.decimal128(22, 2), pa.string_view()], ids=str)
def test_a_column_of_another_type_names_the_same_persons(policy, tmp_path, kind):
    """Databases write 7 as 7.00 where a number has two places."""
    store, first = tmp_path / "veil.db", [str(i) for i in range(N)]
    shown = sets(anonymize(people(first), policy, store=store))
    cells = pa.array(first if pa.types.is_decimal(kind) else [f" {name}" for name in first])
    assert sets(anonymize(people(cells.cast(kind)), policy, store=store)) == shown


def test_one_person_is_once_in_a_table_and_is_deleted_by_any_name(policy, tmp_path):
    with pytest.raises(DataError, match="further records of a person"):
        anonymize(people(["7", " 7", "8"]), policy, store=tmp_path / "a.db")
    changing = EvolvingTable(tmp_path / "b.db", policy)
    changing.insert(people([str(i) for i in range(N)]))
    with pytest.raises(DataError, match="already have a record"):
        changing.insert(people([" 7"]))
    assert changing.delete(["7.0", " 8"]).deleted == 2


def test_plain_names_stay_what_they_are():
    column = pa.chunked_array([["007", "A1", None] * 5, ["a1"]])
    assert normalize_names(column) is column
    assert normalize_names(pa.chunked_array([["x y", None, "z\u200b"], ["\u00e9", "e\u0301", "3.50"]])).to_pylist() == [
        "x y",
        None,
        "z",
        "\u00e9",
        "\u00e9",
        "3.50",
    ]


@pytest.mark.parametrize("blank", ["", " ", "\u00a0\t", "\u200b", "\u2800"])
def test_blanks_name_nobody(policy, tmp_path, blank):
    """A person with such an identifier counted as one more person."""
    with pytest.raises(DataError, match="1 records have no value in 'id'"):
        anonymize(people(["7", blank, "8"]), policy, store=tmp_path / "a.db")
    rules = policy.to_dict() | {"table": {"method": "anatomy"}}
    with pytest.raises(DataError, match="1 records have no person"):
        anonymize(people([*map(str, range(N)), blank]), Policy.from_dict(rules, base=policy.base), seed=1)
    with pytest.raises(DataError, match="identifier is missing"):
        EvolvingTable(tmp_path / "b.db", policy).insert(people(["7", blank]))
    with Stream(policy, store=tmp_path / "s.db") as stream:
        rows = people(["7", blank, "8"]).to_pylist()
        lines = stream.push("".join(json.dumps(row) + "\n" for row in rows).encode()).splitlines()
        assert [json.loads(line)["seq"] for line in lines] == [0, 2]
        assert [dead.reason for dead in stream.dead_letters()] == ["no person"]
