"""Numbers of a stream go out in one way, by whatever file they came, and the verifier knows that way."""

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from reticent.cli import app
from reticent.errors import PolicyError

NUMBERS = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "5",
    "5.0",
    "12.5",
    "12.50",
    "-7.00",
    "0.10",
    "0.0001",
    "0.00001",
    "0.000001",
    "0.000012",
    "0.30000000000000004",
    "123456789.123456789123",
    "12345678901234567.25",
    "9007199254740993",
    "9007199254740993.0",
    "123456789012345678",
]
ILLS = ["flu", "gout", "hiv"]
POLICY = """\
version: 1
person: who
columns: {who: identifier, weight: quasi, dose: plain, ill: sensitive}
"""
METHODS = {
    "veil": "privacy: {l: 2}\nprior: {file: prior.csv}\nstream: {method: veil}\n",
    "delay-free": "privacy: {l: 2}\nprior: {file: prior.csv}\nstream: {method: delay-free}\n",
    "castle": "privacy: {k: 2, l: 2}\nstream: {method: castle, delta: 8}\n",
}


def csv(folder):
    (folder / "in.csv").write_text(
        "who,weight,dose,ill\n" + "".join(f"p{i},{i}.50,{n},{ILLS[i % 3]}\n" for i, n in enumerate(NUMBERS))
    )
    return folder / "in.csv"


def ndjson(folder):
    lines = (f'{{"who":"p{i}","weight":{i}.50,"dose":{n},"ill":"{ILLS[i % 3]}"}}\n' for i, n in enumerate(NUMBERS))
    (folder / "in.ndjson").write_text("".join(lines))
    return folder / "in.ndjson"


def parquet(folder):
    size = len(NUMBERS)
    columns = {
        "who": [f"p{i}" for i in range(size)],
        "weight": [i + 0.5 for i in range(size)],
        "ill": (ILLS * size)[:size],
    }
    pq.write_table(pa.table(columns | {"dose": [float(n) for n in NUMBERS]}), folder / "in.parquet")
    return folder / "in.parquet"


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("written", [csv, ndjson, parquet])
def test_what_a_stream_writes_of_numbers_verifies(tmp_path, written, method):
    (tmp_path / "policy.yaml").write_text(POLICY + METHODS[method])
    (tmp_path / "prior.csv").write_text("value,count\nflu,3\ngout,2\nhiv,1\n")
    source, shown, policy = written(tmp_path), tmp_path / "out.ndjson", tmp_path / "policy.yaml"
    run("stream", source, "-p", policy, "--store", tmp_path / "s.db", "--to", shown)
    lines = map(orjson.loads, shown.read_bytes().splitlines())
    doses = {line["seq"]: line["plain"]["dose"] for line in lines if "plain" in line}
    sent = [float(n) if written is parquet or "." in n else int(n) for n in NUMBERS]
    assert [doses[seq] for seq in range(len(NUMBERS))] == sent
    run("verify", shown, "-p", policy)
    if written is not ndjson:  # as a table that file is refused: whole numbers beyond 2^53 next to fractions
        run("verify", shown, "-p", policy, "--original", source)


def test_text_that_looks_like_a_number_stays_text(tmp_path):
    lines = (f'{{"who":"p{i}","weight":1,"dose":"{i}.50","ill":"{ILLS[i % 3]}"}}\n' for i in range(40))
    (tmp_path / "in.ndjson").write_text("".join(lines))
    (tmp_path / "policy.yaml").write_text(POLICY + METHODS["castle"])
    source, shown, policy = tmp_path / "in.ndjson", tmp_path / "out.ndjson", tmp_path / "policy.yaml"
    run("stream", source, "-p", policy, "--store", tmp_path / "s.db", "--to", shown)
    assert b'"dose":"7.50"' in shown.read_bytes()
    run("verify", shown, "-p", policy, "--original", source)


def test_a_column_called_seq_is_refused_where_records_are_pending(tmp_path):
    (tmp_path / "in.csv").write_text("who,weight,seq,ill\np1,1,1,flu\n")
    (tmp_path / "policy.yaml").write_text((POLICY + METHODS["castle"]).replace("dose", "seq"))
    words = ["stream", tmp_path / "in.csv", "-p", tmp_path / "policy.yaml", "--store", tmp_path / "s.db"]
    done = CliRunner().invoke(app, [*map(str, words), "--to", str(tmp_path / "out.ndjson")])
    assert isinstance(done.exception, PolicyError)
    assert "released column 'seq'" in str(done.exception)
