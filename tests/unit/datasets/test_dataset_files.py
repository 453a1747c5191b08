from __future__ import annotations

import json
import resource

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

import reticent
from reticent.connectors.files import read_table
from reticent.datasets import census, feed, files, hospital, nps, omop, series, visits
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import write, write_text
from reticent.engine.veil.parameters import VeilParameters
from reticent.errors import ConnectorError, PolicyError
from reticent.policy import Policy

COLUMNS = {
    "hospital": hospital.generate(1).column_names,
    "visits": visits.generate(1).column_names,
    "series": series.generate(1, 1)[0].column_names,
    "feed": feed.generate(1).column_names,
    "evolving": census.generate(1).column_names,
    "m-distinct": census.generate(1, layout="m-distinct").column_names,
    "ipums": census.generate(1, layout="ipums").column_names,
    "nps": nps.generate(1).column_names,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_policy_names_exactly_the_columns(kind):
    policy = yaml.safe_load(policy_yaml(kind))
    assert policy["version"] == 1
    assert list(policy["columns"]) == COLUMNS[kind]
    assert policy["person"] in policy["columns"]


@pytest.mark.parametrize(
    ("write", "data", "method"),
    [
        (files.write_hospital, "a.csv", None),
        (files.write_hospital, "a.csv", "veil"),
        (files.write_census, "a.csv", None),
        (files.write_census, "a.csv", "veil"),
        (files.write_series, "release_1.csv", "veil"),
    ],
)
def test_a_first_release_shows_no_exact_date_age_or_postcode(tmp_path, write, data, method):
    """New users publish with the policy that comes with the data, and copy it."""
    written = write(tmp_path if data != "a.csv" else tmp_path / data, 400, seed=1)
    table = read_table(tmp_path / data)
    release = reticent.anonymize(table, written[-1], method=method, store=tmp_path / "a.db" if method else None, seed=1)
    fine = {"birth_date", "admission_date", "postcode", "age"} & set(table.column_names)
    assert fine
    for column in fine:
        shown = set(map(str, release.tables["data"][column].to_pylist()))
        assert not shown & set(map(str, table[column].to_pylist())), column


def test_unknown_policy_is_refused():
    with pytest.raises(PolicyError, match="hospital"):
        policy_yaml("nothing")


def test_hospital_is_written_with_its_policy(tmp_path):
    written = files.write_hospital(tmp_path / "a.csv", 100, seed=1)
    assert [path.name for path in written] == ["a.csv", "a.prior.csv", "a.policy.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.policy.yaml", "a.prior.csv"]
    policy = Policy.load(tmp_path / "a.policy.yaml")
    assert policy.sensitive == ("diagnosis",)
    assert policy.prior.file == "a.prior.csv"


@pytest.mark.parametrize("kind", ["hospital", "census"])
def test_the_prior_is_the_distribution_of_the_generator(tmp_path, kind):
    """Shares of a large draw, by stratum of the prior, are those of the prior."""
    getattr(files, f"write_{kind}")(tmp_path / "a.csv", 40_000, seed=1)
    policy = Policy.load(tmp_path / "a.policy.yaml")
    parameters = VeilParameters.of(policy, "evolving")
    table = read_table(tmp_path / "a.csv")
    _, strata = parameters.levels.publish(table)
    values = parameters.domain.encode(table.column(parameters.sensitive))
    assert (values >= 0).all()
    shares = parameters.segments / parameters.segments.sum(axis=1, keepdims=True)
    seen = np.zeros(shares.shape)
    np.add.at(seen, (strata, values), 1)
    expected = shares * seen.sum(axis=1, keepdims=True)
    big = expected >= 8
    misfit = ((seen - expected) ** 2 / np.maximum(expected, 1e-9))[big].mean()
    assert 0.8 < misfit < 1.3


@pytest.mark.parametrize("layout", census.LAYOUTS)
def test_census_is_written_with_its_policy(tmp_path, layout):
    files.write_census(tmp_path / "a.csv", 100, seed=1, layout=layout)
    assert Policy.load(tmp_path / "a.policy.yaml").sensitive == (census.LAYOUTS[layout].columns[-1],)


def test_feed_with_prior_and_kernel(tmp_path):
    written = files.write_feed(tmp_path / "a.csv", 100, seed=1)
    assert [path.name for path in written] == ["a.csv", "prior.csv", "kernel.csv", "a.policy.yaml"]
    assert (tmp_path / "prior.csv").read_text().startswith("sex,age,value,count\n")
    policy = Policy.load(tmp_path / "a.policy.yaml")
    assert (policy.prior.file, policy.prior.kernel.file) == ("prior.csv", "kernel.csv")
    with pytest.raises(PolicyError):
        files.write_feed(tmp_path / "prior.csv", 1)


def test_a_feed_keeps_the_files_of_others(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\nflu,1\n")
    first = files.write_feed(tmp_path / "a.csv", 50, seed=1)
    assert [path.name for path in first][1:3] == ["a.prior.csv", "kernel.csv"]
    assert [path.name for path in files.write_feed(tmp_path / "b.csv", 50, seed=2)][1:3] == [
        "b.prior.csv",
        "kernel.csv",
    ]
    assert (tmp_path / "prior.csv").read_text() == "value,count\nflu,1\n"
    assert Policy.load(tmp_path / "a.policy.yaml").prior.file == "a.prior.csv"


def test_the_laws_of_the_feed_are_shares():
    prior = feed.strata().to_pylist()
    assert {(row["sex"], row["age"]) for row in prior} >= {("female", "<5"), ("male", "85+")}
    assert not any(row["value"] == "childbirth" for row in prior if row["sex"] == "male")
    chances: dict[str, float] = {}
    for row in feed.kernel().to_pylist():
        chances[row["value"]] = chances.get(row["value"], 0) + row["probability"]
    assert chances.keys() == set(feed.VALUES)
    assert max(abs(total - 1) for total in chances.values()) < 1e-6


def test_series_as_a_folder(tmp_path):
    files.write_series(tmp_path / "s", 200, seed=1, releases=3)
    names = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert names == ["policy.yaml", "prior.csv", "release_1.csv", "release_2.csv", "release_3.csv", "updates.csv"]
    assert (
        (tmp_path / "s" / "updates.csv").read_text().startswith("value,next,probability\nmild asthma,mild asthma,0.7\n")
    )
    assert len((tmp_path / "s" / "release_1.csv").read_text().splitlines()) == 201
    assert Policy.load(tmp_path / "s" / "policy.yaml").columns["diagnosis"].updates.file == "updates.csv"


@pytest.mark.parametrize("kind", ["hospital", "census", "feed"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_same_seed_same_bytes(tmp_path, kind, suffix):
    make = getattr(files, f"write_{kind}")
    for folder in "ab":
        make(tmp_path / folder / f"x.{suffix}", 300, seed=5)
    assert (tmp_path / "a" / f"x.{suffix}").read_bytes() == (tmp_path / "b" / f"x.{suffix}").read_bytes()


def test_csv_bytes_do_not_depend_on_the_batches(tmp_path):
    for size in (10, 1_000):
        write(hospital.batches(2_000, 1, size), tmp_path / f"{size}.csv")
    assert (tmp_path / "10.csv").read_bytes() == (tmp_path / "1000.csv").read_bytes()


def test_every_format_holds_the_same_rows(tmp_path):
    table = feed.generate(500, 2)
    for suffix in ("csv", "parquet", "arrow", "ndjson"):
        write(feed.batches(500, 2, 99), tmp_path / f"x.{suffix}")
    assert pa.parquet.read_table(tmp_path / "x.parquet").cast(table.schema).equals(table)
    assert pa.ipc.open_file(tmp_path / "x.arrow").read_all().combine_chunks().equals(table)
    types = pa.csv.ConvertOptions(column_types=table.schema)
    assert pa.csv.read_csv(tmp_path / "x.csv", convert_options=types).combine_chunks().equals(table)
    rows = [json.loads(line) for line in (tmp_path / "x.ndjson").read_text().splitlines()]
    expected = table.set_column(0, "admitted", pa.array([t.isoformat() for t in table["admitted"].to_pylist()]))
    assert rows == expected.to_pylist()


def test_ndjson_escapes(tmp_path):
    table = pa.table({"a": ['say "x"', "back\\slash"], "b": [1, 2]})
    write([table], tmp_path / "x.ndjson")
    assert [json.loads(line) for line in (tmp_path / "x.ndjson").read_text().splitlines()] == table.to_pylist()


def test_empty_tables_are_written(tmp_path):
    for suffix in ("csv", "parquet", "arrow", "ndjson"):
        write(hospital.batches(0), tmp_path / f"x.{suffix}")
    assert (tmp_path / "x.csv").read_text().count("\n") == 1
    assert (tmp_path / "x.ndjson").read_text() == ""


def test_files_are_private(tmp_path):
    files.write_hospital(tmp_path / "a.csv", 10)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_unknown_suffix_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(PolicyError, match="ndjson"):
        files.write_hospital(tmp_path / "a.xlsx", 10)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing(tmp_path):
    def broken():
        yield hospital.generate(10)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(broken(), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_with_a_hint(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectorError, match="Choose a folder"):
        files.write_hospital(tmp_path / "file" / "a.csv", 10)
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(ConnectorError):
        files.write_hospital(tmp_path / "a.csv", 10)
    with pytest.raises(ConnectorError):
        write_text("x", tmp_path / "a.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "file"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, suffix):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(ConnectorError, match="free space"):
            files.write_hospital(tmp_path / f"a.{suffix}", 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_finished_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with pytest.raises(ConnectorError, match="free space"):
            omop.write_omop(tmp_path / "a.db", 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_omop_rows_come_in_parts_and_every_place_is_known():
    parts = list(omop.rows(40_000, 1))
    assert max(len(values) for _, values in parts) < 40_000
    whole = {table: [row for name, values in parts if name == table for row in values] for table in omop.TABLES}
    assert [len(whole[name]) for name in ("person", "visit_occurrence", "condition_occurrence")] == [40_000] * 3
    places = [row[0] for row in whole["location"]]
    assert len(places) == len(set(places))
    assert {row[5] for row in whole["person"]} <= set(places)
