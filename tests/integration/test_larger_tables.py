"""The release that DuckDB counts equals the release of one machine, row for row; what cannot be kept is refused, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import stat
import subprocess
import sys
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counted_cases import COLUMNS, REQUIREMENTS, as_sorted, in_their_place, noted, policy, rows, written_in_two_ways

from reticent import Policy, anonymize, verify
from reticent.errors import ConnectorError, DataError, GuaranteeError, PolicyError

duck = pytest.importorskip("reticent.connectors.duck")
pytest.importorskip("duckdb")
KILLS = int(os.environ.get("RETICENT_KILLS", "3"))


def written(folder, table: pa.Table):
    pq.write_table(table, folder / "in.parquet")
    return folder / "in.parquet"


def text(table: pa.Table) -> pa.Table:
    return pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})


@pytest.mark.parametrize("method", ["optimal", "mondrian", "local"])
@pytest.mark.parametrize("privacy", REQUIREMENTS, ids=str)
def test_what_duckdb_counts_is_what_one_machine_releases(tmp_path, privacy, method):
    table, wanted = rows(), policy(privacy, method=method, gs_factor=0.7)
    local = anonymize(table, wanted, seed=1)
    made = duck.anonymize(written(tmp_path, table), wanted, tmp_path / "out")
    released = pq.read_table(tmp_path / "out" / "data.parquet")
    assert as_sorted(text(released)) == as_sorted(text(local.tables["data"]))
    assert made.records == local.records
    assert made.guarantee == local.guarantee
    assert made.metrics == pytest.approx(dict(local.metrics))
    assert verify(tmp_path / "out", wanted).holds
    local.to_dir(tmp_path / "local", format="parquet")
    books = [json.loads((tmp_path / name / "codebook.json").read_text()) for name in ("out", "local")]
    assert books[0] == books[1]


def test_rows_come_sorted_with_their_plain_cells_and_for_the_owner_alone(tmp_path):
    table = rows(2000).append_column("note", pa.array([f"n{i % 7}" if i % 11 else None for i in range(2000)]))
    rules = {"version": 1, "person": "person_id", "columns": COLUMNS | {"note": "plain"}, "missing": ["n3"]}
    wanted = Policy.from_dict(rules | {"privacy": {"k": 5, "suppression": 0.1}, "table": {"method": "optimal"}})
    duck.anonymize(written(tmp_path, table), wanted, tmp_path / "out", memory="200MB")
    released = pq.read_table(tmp_path / "out" / "data.parquet")
    assert as_sorted(text(released)) == as_sorted(text(anonymize(table, wanted, seed=1).tables["data"]))
    assert "n3" not in released.column("note").to_pylist()
    order = [tuple((value is None, value) for value in row.values()) for row in released.to_pylist()]
    assert order == sorted(order)
    files = [tmp_path / "out", *(tmp_path / "out").iterdir()]
    assert not any(stat.S_IMODE(file.stat().st_mode) & 0o077 for file in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out"]


def test_equal_rows_that_are_parted_keep_their_plain_cells_in_an_order_that_nobody_knows(tmp_path):
    table, wanted = noted()
    local = anonymize(table, wanted, seed=1).tables["data"]
    released = []
    for name in ("out", "again"):
        duck.anonymize(written(tmp_path, table), wanted, tmp_path / name)
        released.append(text(pq.read_table(tmp_path / name / "data.parquet")))
        assert as_sorted(released[-1].drop_columns(["note"])) == as_sorted(text(local.drop_columns(["note"])))
        assert sorted(released[-1].column("note").to_pylist()) == sorted(table.column("note").to_pylist())
        assert in_their_place(released[-1])
    assert as_sorted(released[0]) != as_sorted(released[1])


@pytest.mark.parametrize("method", ["optimal", "mondrian", "local"])
def test_persons_with_several_records_are_counted_as_one_machine_does(tmp_path, method):
    table = rows(3000)
    people = pa.array([f"p{i // 2}" for i in range(table.num_rows)])
    table = table.set_column(table.column_names.index("person_id"), "person_id", people)
    wanted = policy({"k": 5, "l": 3, "suppression": 0.1}, method=method)
    local = anonymize(table, wanted, seed=1)
    made = duck.anonymize(written(tmp_path, table), wanted, tmp_path / "out")
    released = pq.read_table(tmp_path / "out" / "data.parquet")
    assert as_sorted(text(released)) == as_sorted(text(local.tables["data"]))
    assert made.guarantee == local.guarantee
    assert made.records.suppressed
    assert "persons" in made.guarantee.claims["l"]


@pytest.mark.parametrize("method", ["optimal", "mondrian", "local"])
def test_somebody_who_is_written_in_two_ways_is_counted_once(tmp_path, method):
    whole, parted = written_in_two_ways()
    wanted = policy({"k": 5, "l": 3, "suppression": 0.1}, method=method)
    local = anonymize(whole, wanted, seed=1)
    at = parted.column_names.index("person_id")
    for kind in (pa.string(), pa.binary()):
        parted = parted.set_column(at, "person_id", parted.column("person_id").cast(kind))
        made = duck.anonymize(written(tmp_path, parted), wanted, tmp_path / str(kind))
        released = pq.read_table(tmp_path / str(kind) / "data.parquet")
        assert as_sorted(text(released)) == as_sorted(text(local.tables["data"]))
        assert made.guarantee == local.guarantee
        assert made.records == local.records


def test_persons_that_the_policy_does_not_name_are_told_of_as_on_one_machine(tmp_path):
    table = rows(600)
    people = pa.array([None if i % 50 == 0 else f"p{i // 2}" for i in range(table.num_rows)])
    table = table.set_column(table.column_names.index("person_id"), "person_id", people)
    rules = {"version": 1, "columns": COLUMNS, "privacy": {"k": 5, "suppression": 0.1}, "table": {"method": "optimal"}}
    local = anonymize(table, Policy.from_dict(rules), seed=1)
    made = duck.anonymize(written(tmp_path, table), Policy.from_dict(rules), tmp_path / "out")
    assert made.guarantee.not_covered[0].startswith("PERSONS WITH SEVERAL RECORDS")
    assert made.guarantee == local.guarantee


def refused(tmp_path, table: pa.Table, wanted: Policy, error: type[Exception]) -> str:
    place = written(tmp_path, table)
    with pytest.raises(error) as told:
        duck.anonymize(place, wanted, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"], "nothing is left behind"
    return str(told.value)


def test_what_cannot_be_met_is_refused(tmp_path):
    table = rows(200)
    refused(tmp_path, table, policy({"k": 201}, method="optimal"), GuaranteeError)
    refused(tmp_path, table, policy({"k": 5}, method="supervised"), PolicyError)
    refused(tmp_path, table, policy({"k": 5}, method="mondrian", cuts="relaxed"), PolicyError)
    refused(
        tmp_path, table.rename_columns(["sex" if n == "gender" else n for n in COLUMNS]), policy({"k": 5}), PolicyError
    )
    refused(tmp_path, table.slice(0, 0), policy({"k": 5}), DataError)


def test_classes_that_violate_the_policy_are_found_in_what_was_written(tmp_path, monkeypatch):
    from reticent.connectors.duck.rows import DuckRows

    published = DuckRows.iter_published_parts
    monkeypatch.setattr(
        DuckRows, "iter_published_parts", lambda rows, recoding: published(rows, replace(recoding, suppressed=None))
    )
    told = refused(tmp_path, rows(2000), policy({"k": 5, "suppression": 0.1}), GuaranteeError)
    assert "k = 5" in told


def test_variants_of_a_value_are_refused(tmp_path):
    table = rows(400)
    cells = table.column("occupation").to_pylist()
    cells[0] = str(cells[1]) + " "
    at = table.column_names.index("occupation")
    odd = table.set_column(at, "occupation", pa.array(cells, pa.string()))
    for privacy in ({"k": 2, "suppression": 0.5}, {"k": 2, "l": 2, "suppression": 0.5}):
        assert cells[0] not in refused(tmp_path, odd, policy(privacy), DataError)


def test_a_pseudonym_is_refused_and_not_published_as_it_is(tmp_path):
    (tmp_path / "keys").mkdir()
    columns = COLUMNS | {"person_id": {"role": "plain", "transform": {"pseudonym": "study.key"}}}
    wanted = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 2}}, base=tmp_path / "keys")
    place = written(tmp_path, rows(200))
    with pytest.raises(PolicyError, match="DuckDB cannot pseudonymize"):
        duck.anonymize(place, wanted, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_policy_without_quasi_identifiers_is_refused_by_its_name(tmp_path):
    table, columns = rows(200), {"person_id": "identifier", "age": "plain"}
    wanted = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 2}})
    with pytest.raises(PolicyError, match="no quasi-identifier"):
        duck.anonymize(written(tmp_path, table.select(list(columns))), wanted, tmp_path / "out")


def test_a_file_that_is_no_parquet_is_refused_without_its_cells(tmp_path):
    (tmp_path / "in.parquet").write_text("secret,cells\n1,2\n")
    with pytest.raises(ConnectorError) as told:
        duck.anonymize(tmp_path / "in.parquet", policy({"k": 5}), tmp_path / "out")
    assert "secret" not in str(told.value)


def test_killed_at_a_random_moment_there_is_a_whole_release_or_none(tmp_path):
    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice, whole = random.Random(seed), 0
    wanted = policy({"k": 3, "l": {"frequency": 3}, "suppression": 0.1}, method="local")
    (tmp_path / "policy.json").write_text(json.dumps(wanted.to_dict()))
    words = [str(written(tmp_path, rows())), "-p", str(tmp_path / "policy.json"), "--on-disk", "-o"]
    command = [sys.executable, "-m", "reticent", "anonymize", *words]
    began = time.monotonic()
    subprocess.run([*command, str(tmp_path / "unharmed")], check=True, capture_output=True)
    took = time.monotonic() - began
    for at in range(KILLS):
        out = tmp_path / str(at)
        worker = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(dice.uniform(0.6, 1.0) * took)
        worker.kill()
        worker.wait()
        whole += out.exists()
        assert not out.exists() or verify(out, wanted).holds
        asides = list(tmp_path.glob(f".{at}.*"))
        assert all(stat.S_IMODE(aside.stat().st_mode) == 0o700 for aside in asides)
    print(f"{KILLS} killed, {KILLS - whole} without a release, the others whole")  # noqa: T201 - for make stress


def test_the_command_line_releases_a_file_on_disk(tmp_path, capsys):
    from reticent.cli import main

    table, wanted = rows(2000), policy({"k": 5, "suppression": 0.1})
    (tmp_path / "policy.json").write_text(json.dumps(wanted.to_dict()))
    words = [
        "anonymize",
        str(written(tmp_path, table)),
        "-p",
        str(tmp_path / "policy.json"),
        "-o",
        str(tmp_path / "out"),
    ]
    for more, code in ((["--on-disk", "--store", "s.db"], 2), (["--on-disk", "--memory", "no"], 5), (["--on-disk"], 0)):
        with pytest.raises(SystemExit) as done:
            main([*words, *more])
        assert (done.value.code or 0) == code, capsys.readouterr()
        assert (tmp_path / "out").exists() == (code == 0)
    assert verify(tmp_path / "out", wanted).holds
