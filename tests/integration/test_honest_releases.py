"""What is published verifies, with its input and without, whatever types and names the columns have."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from reticent.cli import app
from reticent.errors import PolicyError

ROLES = "{id: identifier, age: quasi, ward: {role: quasi, hierarchy: {prefix: [1]}}, PLAIN: plain, ill: sensitive}"
PLAIN = {
    "weight": [70 + n / 4 for n in range(80)],
    "when": [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in range(80)],
    "stay": list(range(80)),
    "home": [n % 2 == 0 for n in range(80)],
}


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, PolicyError):
        raise done.exception
    assert done.exit_code == 0, done.output


@pytest.fixture(params=["csv", "parquet"])
def write(request):
    def written(rows, folder):
        file = folder / f"in.{request.param}"
        (pacsv.write_csv if request.param == "csv" else pq.write_table)(rows, file)
        return file

    return written


def people(plain):
    rng = np.random.default_rng(3)
    columns = {"id": [f"p{n}" for n in range(80)], "age": rng.integers(20, 40, 80), "ward": rng.integers(10, 30, 80)}
    return pa.table(columns | {plain: PLAIN[plain], "ill": rng.choice(["flu", "gout", "hiv", "mumps"], 80)})


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("method", ["mondrian", "local", "anatomy"])
def test_a_table_verifies_with_its_input(tmp_path, write, plain, method):
    asked = "{l: 2}" if method == "anatomy" else "{k: 3, l: 2}"
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"version: 1\nperson: id\ncolumns: {ROLES.replace('PLAIN', plain)}\nprivacy: {asked}\ntable: {{method: {method}}}\n"
    )
    source = write(people(plain), tmp_path)
    run("anonymize", source, "-p", policy, "-o", tmp_path / "out", "--seed", 1)
    run("verify", tmp_path / "out", "-p", policy)
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize("method", ["encc", "indexed", "red"])
def test_an_evolving_table_verifies_with_its_input(tmp_path, write, method):
    """Wards are whole numbers in Parquet; codes are text all the same."""
    policy, store = tmp_path / "policy.yaml", tmp_path / "store.db"
    policy.write_text(
        f"version: 1\nperson: id\ncolumns: {ROLES.replace('PLAIN', 'stay')}\nprivacy: {{l: 2}}\nevolving: {{method: {method}}}\n"
    )
    source = write(people("stay"), tmp_path)
    run("evolve", "init", store, "-p", policy)
    run("evolve", "insert", store, source)
    run("evolve", "publish", store, "-o", tmp_path / "out")
    run("verify", tmp_path / "out", "-p", policy)
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize(
    "roles", ["group: quasi, ill: sensitive", "a: quasi, group: plain, ill: sensitive", "a: quasi, group: sensitive"]
)
@pytest.mark.parametrize(
    "kind", ["table: {method: anatomy}", "evolving: {method: indexed}", "series: {method: m-distinct}"]
)
def test_a_column_called_group_is_refused_where_groups_have_numbers(tmp_path, roles, kind):
    policy, source, store = tmp_path / "policy.yaml", tmp_path / "in.csv", tmp_path / "store.db"
    policy.write_text(f"version: 1\nperson: id\ncolumns: {{id: identifier, {roles}}}\nprivacy: {{l: 2}}\n{kind}\n")
    names = ["id", *(word.split(":")[0] for word in roles.split(", "))]
    source.write_text(
        ",".join(names) + "\n" + "".join(",".join(f"{name}{n}" for name in names) + "\n" for n in range(40))
    )
    words = {
        "table": ("anonymize", source, "-p", policy, "-o", tmp_path / "out"),
        "evolving": ("evolve", "init", store, "-p", policy),
        "series": ("republish", source, "-p", policy, "--store", store, "-o", tmp_path / "out"),
    }
    with pytest.raises(PolicyError, match="released column 'group' has the name of the column"):
        run(*words[kind.split(":")[0]])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("choice", ["first", "last"])
def test_an_evolving_table_of_one_record_each_verifies_with_all_records(tmp_path, write, choice):
    """The policy that `init --for evolving` writes for an export with several records of a person."""
    policy, store, prior = (tmp_path / name for name in ("policy.yaml", "store.db", "prior.csv"))
    policy.write_text(
        f"version: 1\nperson: {{column: id, records: {choice}}}\ncolumns: {ROLES.replace('PLAIN', 'stay')}\n"
        "privacy: {l: 2}\nprior: {file: prior.csv}\nevolving: {method: veil}\n"
    )
    prior.write_text("value,count\nflu,20\ngout,20\nhiv,20\nmumps,20\n")
    rows = people("stay")
    source = write(rows.set_column(0, "id", pa.array([f"p{n // 2}" for n in range(80)])), tmp_path)
    run("evolve", "init", store, "-p", policy)
    run("evolve", "insert", store, source)
    run("evolve", "publish", store, "-o", tmp_path / "out")
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize("l", ["{recursive: [3, 2]}", "{entropy: 2}", "{frequency: 2}"])
def test_anatomy_verifies_with_every_kind_of_l(tmp_path, write, l):
    """The words of the codebook stood in another order than those of the manifest."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"version: 1\nperson: id\ncolumns: {ROLES.replace('PLAIN', 'stay')}\nprivacy: {{l: {l}}}\ntable: {{method: anatomy}}\n"
    )
    source = write(people("stay"), tmp_path)
    run("anonymize", source, "-p", policy, "-o", tmp_path / "out")
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize("method", ["optimal", "mondrian", "local"])
def test_a_value_that_only_suppressed_records_have(tmp_path, write, method):
    """It was taken for a value outside of the reference of t."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"version: 1\nperson: {{column: id, records: first}}\ncolumns: {ROLES.replace('PLAIN', 'stay')}\n"
        f"privacy: {{t: 0.9}}\ntable: {{method: {method}}}\n"
    )
    rows = people("stay")
    again = rows.slice(0, 1).set_column(rows.column_names.index("ill"), "ill", pa.array(["plague"]))
    source = write(pa.concat_tables([rows, again]), tmp_path)
    run("anonymize", source, "-p", policy, "-o", tmp_path / "out")
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize("method", ["enc", "indexed", "veil"])
def test_an_evolving_table_with_missing_cells_is_the_same_when_it_is_opened_again(tmp_path, method):
    """More words than are looked up one by one, new ones behind a missing one, and a command for each part."""
    numbers = range(120)
    rows = pa.table(
        {
            "id": [f"p{n}" for n in numbers],
            "age": pa.array([None if n % 7 == 0 else n for n in numbers]),
            "ward": [None if n % 5 == 0 else f"w{n}" for n in numbers],
            "ill": [None if n % 11 == 0 else f"d{n % 40}" for n in numbers],
        }
    )
    policy, store = tmp_path / "policy.yaml", tmp_path / "store.db"
    (tmp_path / "prior.csv").write_text("value,count\n,9\n" + "".join(f"d{n},9\n" for n in range(40)))
    policy.write_text(
        "version: 1\nperson: id\ncolumns: {id: identifier, age: quasi, ward: quasi, ill: sensitive}\nprivacy: {l: 3}\n"
        f"prior: {{file: prior.csv}}\nevolving: {{method: {method}}}\n"
    )
    pq.write_table(rows, tmp_path / "in.parquet")
    run("evolve", "init", store, "-p", policy)
    for part in range(3):
        pq.write_table(rows.slice(40 * part, 40), tmp_path / "part.parquet")
        run("evolve", "insert", store, tmp_path / "part.parquet")
    run("evolve", "publish", store, "-o", tmp_path / "out")
    run("verify", tmp_path / "out", "-p", policy, "--original", tmp_path / "in.parquet")


@pytest.mark.parametrize("role", ["quasi", "plain"])
@pytest.mark.parametrize("method", ["veil", "anatomy", "mondrian", "optimal"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.uint64()], ids=str)
def test_numbers_of_other_widths_are_published_as_they_read(tmp_path, role, method, file_format, kind):
    cells = [0.1, 3.25, 1e-7, 1e16] if pa.types.is_floating(kind) else [2**63 + n for n in range(4)]
    rows = people("stay").drop_columns(["age"]).append_column("age", pa.array(cells * 20, kind))
    (tmp_path / "prior.csv").write_text("value,count\nflu,9\ngout,9\nhiv,9\nmumps,9\n")
    policy = tmp_path / "policy.yaml"
    asked = "{k: 3}" if method in ("mondrian", "optimal") else "{l: 2}"
    policy.write_text(
        f"version: 1\nperson: id\ncolumns: {{id: identifier, age: {role}, ward: quasi, stay: identifier, ill: sensitive}}\n"
        f"privacy: {asked}\nprior: {{file: prior.csv}}\ntable: {{method: {method}}}\n"
    )
    source = tmp_path / "in.parquet"
    pq.write_table(rows, source)
    place = ["-o", tmp_path / "out", "--store", tmp_path / "veil.db", "--format", file_format]
    run("anonymize", source, "-p", policy, *place)
    run("verify", tmp_path / "out", "-p", policy, "--original", source)


@pytest.mark.parametrize("method", ["veil", "delay-free"])
def test_a_stream_of_numbers_of_32_bits_verifies_with_its_input(tmp_path, method):
    rows = people("stay").drop_columns(["age", "stay"])
    rows = rows.append_column("age", pa.array([0.1, 1e-7, 3.25, 7] * 20, pa.float32()))
    (tmp_path / "prior.csv").write_text("value,count\nflu,9\ngout,9\nhiv,9\nmumps,9\n")
    policy, source, sink = tmp_path / "policy.yaml", tmp_path / "in.parquet", tmp_path / "out.ndjson"
    policy.write_text(
        "version: 1\nperson: id\ncolumns: {id: identifier, age: quasi, ward: quasi, ill: sensitive}\nprivacy: {l: 2}\n"
        f"prior: {{file: prior.csv}}\nstream: {{method: {method}}}\n"
    )
    pq.write_table(rows, source)
    run("stream", source, "-p", policy, "--store", tmp_path / "store.db", "--to", sink)
    run("verify", sink, "-p", policy, "--original", source)


@pytest.mark.parametrize("method", ["veil", "delay-free", "castle"])
@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_a_stream_verifies_with_input_of_any_type(tmp_path, method, kind):
    ills = pa.array([str(n % 6) for n in range(80)]).cast(pa.string())
    ills = ills.dictionary_encode() if pa.types.is_dictionary(kind) else ills.cast(kind)
    rows = people("stay").drop_columns(["ill", "stay"]).append_column("ill", ills)
    wards = rows["ward"].cast(pa.string())
    wards = wards if pa.types.is_integer(kind) or pa.types.is_dictionary(kind) else wards.cast(kind)
    rows = rows.set_column(rows.column_names.index("ward"), "ward", wards)
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{n},9\n" for n in range(6)))
    policy, source, sink = tmp_path / "policy.yaml", tmp_path / "in.parquet", tmp_path / "out.ndjson"
    asked = "{k: 3}" if method == "castle" else "{l: 2}"
    policy.write_text(
        f"version: 1\nperson: id\ncolumns: {{id: identifier, age: quasi, ward: quasi, ill: sensitive}}\nprivacy: {asked}\n"
        f"prior: {{file: prior.csv}}\nstream: {{method: {method}}}\n"
    )
    pq.write_table(rows, source)
    run("stream", source, "-p", policy, "--store", tmp_path / "store.db", "--to", sink)
    run("verify", sink, "-p", policy, "--original", source)
