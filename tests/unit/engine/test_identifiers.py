"""Pseudonyms, date shifts and combined columns, by policy, before any engine sees the data."""

import datetime as dt
import stat

import pyarrow as pa
import pytest

from reticent import Series
from reticent.api import anonymize
from reticent.engine import keys, publisher
from reticent.engine.identifiers import prepare, pseudonym, shift_days
from reticent.engine.rng import Rng
from reticent.errors import ConnectorError, DataError, GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.check import check

DAY = dt.date(2025, 3, 1)


def rules(folder, columns, **more):
    return Policy.from_dict({"version": 1, "columns": columns, **more}, base=folder)


@pytest.fixture
def key(tmp_path):
    return keys.new(tmp_path / "study.key")


def test_key_files_are_private_and_rotate(tmp_path, key):
    path = tmp_path / "study.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.secret.hex() not in repr(key)
    turned = keys.rotate(path)
    assert (turned.current, turned.keys["k1"]) == ("k2", key.secret)
    assert pseudonym("7", key) != pseudonym("7", turned)
    assert pseudonym("7", turned).startswith("k2-")
    with pytest.raises(ConnectorError, match="exists"):
        keys.new(path)
    path.chmod(0o644)
    with pytest.raises(PolicyError, match="chmod 600"):
        keys.Keys.load(path)


def test_a_key_that_could_not_take_its_place_is_left_nowhere(tmp_path, key, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reticent.disk.move", refuse)
    with pytest.raises(ConnectorError, match="cannot be written"):
        keys.rotate(tmp_path / "study.key")
    assert [path.name for path in tmp_path.iterdir()] == ["study.key"]
    assert keys.Keys.load(tmp_path / "study.key").current == key.current


@pytest.mark.parametrize("text", ["", "{}", '{"current": "k1", "keys": {"k1": "ab"}}', '{"current": "k2", "keys": {}}'])
def test_corrupt_key_files_are_refused(tmp_path, text):
    path = tmp_path / "x.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(PolicyError):
        keys.Keys.load(path)


def test_pseudonyms_replace_values_in_the_release(tmp_path, key):
    policy = rules(
        tmp_path,
        {"id": {"role": "plain", "transform": {"pseudonym": "study.key"}}, "age": "quasi", "ill": "sensitive"},
        privacy={"l": 2},
    )
    table = pa.table({"id": [f"id{i}" for i in range(40)], "age": ["1"] * 40, "ill": ["a", "b", "c", "d"] * 10})
    release = anonymize(table, policy, method="anatomy")
    shown = set(release.tables["qit"].column("id").to_pylist())
    assert shown == {pseudonym(f"id{i}", key) for i in range(40)}
    assert table.column("id")[0].as_py() == "id0"


def test_pseudonyms_that_link_records_are_refused(tmp_path, key):
    columns = {"id": {"role": "plain", "transform": {"pseudonym": "study.key"}}, "age": "quasi", "ill": "sensitive"}
    policy = rules(tmp_path, columns, privacy={"l": 2})
    batch = pa.table({"id": ["x", "y"], "age": ["1", "1"], "ill": ["a", "b"]})
    engine = publisher(policy, "table", "anatomy", rng=Rng.from_seed(1))
    engine.push(batch)
    engine.push(batch)
    with pytest.raises(GuaranteeError, match="link"):
        engine.close()
    for kind, method in (("evolving", "indexed"), ("series", "m-distinct"), ("stream", "delay-free")):
        with pytest.raises(PolicyError, match="link"):
            publisher(policy, kind, method, rng=Rng.from_seed(1))


def test_dates_of_a_person_move_together(tmp_path, key):
    columns = {
        "person": "identifier",
        "came": {"role": "quasi", "transform": {"shift": 30, "key": "study.key"}},
        "left": {"role": "quasi", "transform": {"shift": 30, "key": "study.key"}},
    }
    policy = rules(tmp_path, columns, person="person")
    days = [DAY + dt.timedelta(i) for i in range(50)]
    table = pa.table({"person": [str(i % 10) for i in range(50)], "came": days, "left": [str(day) for day in days]})
    moved = prepare(table, policy).to_pylist()
    for row, day in zip(moved, days, strict=True):
        assert row["came"] == row["left"] == day + dt.timedelta(shift_days(row["person"], key.secret, 30))
        assert 0 < abs((row["came"] - day).days) <= 30


def test_a_new_key_does_not_shift_dates_again(tmp_path, key):
    """If every new key shifted dates again, six releases of a series would narrow 61 possible days to 16."""
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"v{i},9\n" for i in range(9)))
    columns = {
        "person": "identifier",
        "line": "plain",
        "came": {"role": "quasi", "transform": {"shift": 30, "key": "study.key"}},
        "ill": "sensitive",
    }
    policy = rules(tmp_path, columns, person="person", privacy={"l": 3}, prior={"file": "prior.csv"})
    table = pa.table(
        {
            "person": [f"p{i}" for i in range(60)],
            "line": list(range(60)),
            "came": [str(DAY + dt.timedelta(i)) for i in range(60)],
            "ill": [f"v{i % 9}" for i in range(60)],
        }
    )
    series, shown = Series(tmp_path / "store.db", policy), set()
    for _ in range(3):
        shown |= {(row["line"], str(row["came"])) for row in series.publish(table).tables["data"].to_pylist()}
        keys.rotate(tmp_path / "study.key")
    assert len(shown) == 60


def test_every_shift_is_possible_and_none_is_zero():
    shifts = {shift_days(str(i), b"k" * 32, 3) for i in range(500)}
    assert shifts == {-3, -2, -1, 1, 2, 3}


def test_shift_without_a_key_holds_for_one_table_only(tmp_path):
    columns = {"p": "identifier", "d": {"role": "quasi", "transform": {"shift": 5}}, "s": "sensitive"}
    policy = rules(tmp_path, columns, person="p")
    table = pa.table({"p": ["1", "1"], "d": [DAY, DAY], "s": ["a", "b"]})
    first, second = prepare(table, policy).column("d").to_pylist()
    assert first == second != DAY
    with pytest.raises(PolicyError, match="key"):
        publisher(policy, "series", "m-distinct", rng=Rng.from_seed(1))


def test_shift_refuses_what_is_no_date_or_has_no_person(tmp_path, key):
    columns = {"p": "identifier", "d": {"role": "quasi", "transform": {"shift": 5, "key": "study.key"}}}
    policy = rules(tmp_path, columns, person="p")
    with pytest.raises(DataError, match="1 cells are not dates") as error:
        prepare(pa.table({"p": ["1", "2"], "d": ["2025-01-01", "secret"]}), policy)
    assert "secret" not in str(error.value)
    with pytest.raises(DataError, match="no person"):
        prepare(pa.table({"p": ["1", None], "d": ["2025-01-01", "2025-01-01"]}), policy)
    assert prepare(pa.table({"p": ["1"], "d": pa.array([None], pa.string())}), policy).column("d").null_count == 1


@pytest.mark.parametrize(
    "column",
    [
        {"role": "quasi", "transform": "drop"},
        {"role": "quasi", "transform": {"pseudonym": "k"}},
        {"role": "sensitive", "transform": {"shift": 5}},
        {"role": "plain", "transform": {"shift": 5, "pseudonym": "k"}},
        {"role": "plain", "transform": {"shift": 0}},
        {"role": "quasi", "combine": ["a", "b"]},
        {"role": "sensitive", "combine": ["a"]},
        {"role": "plain", "transform": {"shift": 5}},  # no person
    ],
)
def test_policies_that_make_no_sense_are_refused(tmp_path, column):
    with pytest.raises(PolicyError):
        rules(tmp_path, {"x": column})


def test_check_wants_the_key_file(tmp_path):
    policy = rules(tmp_path, {"x": {"role": "plain", "transform": {"pseudonym": "none.key"}}})
    with pytest.raises(PolicyError, match=r"reticent keys new none\.key"):
        check(policy)


def test_rotation_does_not_change_the_policy_hash(tmp_path, key):
    columns = {"x": {"role": "plain", "transform": {"pseudonym": "study.key"}}}
    before = rules(tmp_path, columns).hash
    keys.rotate(tmp_path / "study.key")
    assert rules(tmp_path, columns).hash == before


def test_combined_columns_are_one_value(tmp_path):
    policy = rules(
        tmp_path, {"age": "quasi", "both": {"role": "sensitive", "combine": ["ill", "drug"]}}, privacy={"l": 2}
    )
    table = pa.table({"age": ["1"] * 8, "ill": ["a", "b"] * 4, "drug": ["x", "x", "y", "y"] * 2})
    release = anonymize(table, policy, method="anatomy")
    assert set(release.tables["st"].column("value").to_pylist()) == {"a | x", "b | x", "a | y", "b | y"}
    assert any("combination" in text for text in release.guarantee.not_covered)
    with pytest.raises(PolicyError, match="drug"):
        anonymize(table.drop_columns(["drug"]), policy, method="anatomy")


@pytest.mark.parametrize("method", ["optimal", "mondrian", "local"])
def test_every_one_of_several_sensitive_columns_is_diverse(tmp_path, method):
    spec = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    policy = rules(tmp_path, {"age": spec, "ill": "sensitive", "drug": "sensitive"}, privacy={"k": 3, "l": 3})
    n = 600
    table = pa.table(
        {
            "age": [str((i * 7) % 80) for i in range(n)],
            "ill": [f"i{(i * i) % 11}" for i in range(n)],
            "drug": [f"d{(i // 3) % 7}" for i in range(n)],
        }
    )
    release = anonymize(table, policy, method=method)
    found: dict[str, list[set[str]]] = {}
    for row in release.tables["data"].to_pylist():
        seen = found.setdefault(str(row["age"]), [set(), set()])
        seen[0].add(row["ill"])
        seen[1].add(row["drug"])
    assert all(len(values) >= 3 for seen in found.values() for values in seen)
    assert any("infers another" in text for text in release.guarantee.not_covered)
