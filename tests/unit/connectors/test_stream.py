"""The runner: what it reads, what it sets aside, and that it goes on where it was."""

import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import orjson
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.cli import main
from reticent.connectors.files import read_table
from reticent.connectors.stream import FileSource, Stream
from reticent.errors import ConnectorError, ReticentError, StateError
from reticent.policy import Policy
from reticent.publication.blocks import CsvLineFormat, JsonLineFormat
from reticent.publication.records import RecordReader
from reticent.store import Store
from reticent.verify import verify

RULES = {
    "version": 1,
    "person": "who",
    "columns": {"who": "identifier", "age": "quasi", "town": "quasi", "note": "plain", "ill": "sensitive"},
    "privacy": {"l": 2},
    "prior": {"file": "prior.csv"},
}


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\na,5\nb,5\nc,4\n")
    (tmp_path / "policy.json").write_text(json.dumps(RULES))
    return Policy.load(tmp_path / "policy.json")


def rows(n, start=0):
    return [f"p{i},{20 + i % 50},t{i % 7},x,{'abc'[i % 3]}" for i in range(start, start + n)]


def release(policy, folder, source, sink="out.ndjson", **more):
    block = {"block": more.pop("block")} if "block" in more else {}
    with Stream(policy, store=folder / "store.db", seed=1) as stream, closing(FileSource(str(source), **block)) as file:
        return stream.run(file, str(folder / sink), **more)


def lines(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def seqs(path):
    return [line["seq"] for line in lines(path) if line["type"] in ("tuple", "record")]


def test_a_file_is_released_and_verifies(policy, tmp_path):
    (tmp_path / "in.csv").write_text("who,age,town,note,ill\n" + "\n".join(rows(300)) + "\n")
    done = release(policy, tmp_path, tmp_path / "in.csv")
    assert done.records.published == 300
    assert seqs(tmp_path / "out.ndjson") == list(range(300))
    first = next(line for line in lines(tmp_path / "out.ndjson") if line["type"] == "record")
    assert first == first | {"quasi": {"age": 20, "town": "t0"}, "plain": {"note": "x"}}
    assert verify(str(tmp_path / "out.ndjson"), policy).holds


def test_a_file_that_grows_is_read_on(policy, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("who,age,town,note,ill\n" + "\n".join(rows(100)) + "\n")
    release(policy, tmp_path, path)
    with path.open("a") as file:
        file.write("\n".join(rows(100, 100)) + "\n")
    assert release(policy, tmp_path, path, block=300).records.published == 200
    assert seqs(tmp_path / "out.ndjson") == list(range(200))
    assert release(policy, tmp_path, path).records.published == 200, "nothing new, nothing released"


def test_bad_lines_are_set_aside_with_a_reason(policy, tmp_path):
    good = rows(8)
    good[2] = "too,few"
    good[4] = ",33,t1,x,a"
    body = "\n".join([*good, "p8,38,t1,x,a", '"p9",40,"a\nb",x,b'])
    (tmp_path / "in.csv").write_text("who,age,town,note,ill\n" + body + "\n\n")
    done = release(policy, tmp_path, tmp_path / "in.csv")
    assert done.dead_letters == 2
    with Store.open(tmp_path / "store.db") as store:
        found = [(letter.position, letter.reason) for letter in store.dead_letters("stream")]
    assert found == [("2", "2 cells where the header has 5"), ("4", "no person")]
    assert seqs(tmp_path / "out.ndjson") == [0, 1, 3, 5, 6, 7, 8, 9]


def test_bytes_that_are_not_text_are_set_aside(policy):
    parser = CsvLineFormat(RecordReader(policy))
    parser.begin(b"who,age,town,note,ill\n")
    batch, _ = parser.read(b"p0,1,t,x,a\np1,\xff,t,x,a\nx\np2,3,t,x,b\n", last=False)
    assert [(number, why) for number, why, _ in batch.rejected] == [
        (1, "not UTF-8"),
        (2, "1 cells where the header has 5"),
    ]
    assert batch.rows.tolist() == [0, 3]
    assert batch.total == 4


def test_a_short_line_with_bad_bytes_is_set_aside_in_silence(policy, capfd):
    reader = CsvLineFormat(RecordReader(policy))
    reader.begin(b"who,age,town,note,ill\n")
    batch, _ = reader.read(b"p0,1,t,x,a\n\x88,secret\np1,2,t,x,b\n", last=False)
    assert [why for _, why, _ in batch.rejected] == ["not UTF-8"]
    assert batch.rows.tolist() == [0, 2]
    assert capfd.readouterr().err == ""


def test_an_open_quote_costs_its_line_only(policy, tmp_path):
    text = "who,age,town,note,ill\n" + "\n".join([*rows(3), 'p3,"44,t1,x,a', *rows(3, 4)]) + "\n"
    (tmp_path / "in.csv").write_text(text)
    assert release(policy, tmp_path, tmp_path / "in.csv").dead_letters == 1
    assert seqs(tmp_path / "out.ndjson") == [0, 1, 2, 4, 5, 6]


def test_ndjson_is_read_line_by_line(policy):
    reader = RecordReader(policy)
    good = {"who": "p", "age": 30, "town": "t", "note": None, "ill": "a"}
    bad = [b"{", b"[1]", orjson.dumps(good | {"extra": 1}), orjson.dumps(good | {"age": [1]})]
    batch = reader.ndjson(b"\n".join([orjson.dumps(good), *bad, b"", orjson.dumps(good | {"age": 2.5})]) + b"\n")
    assert batch.table.column("age").to_pylist() == ["30", "2.5"]
    assert [number for number, _, _ in batch.rejected] == [1, 2, 3, 4]
    assert batch.rows.tolist() == [0, 5]
    assert batch.tokens["age"].to_pylist() == ["30", "2.5"]
    assert list(batch.tokens) == ["age"]
    assert RecordReader(policy, ("town",)).ndjson(orjson.dumps(good)).rejected[0].reason == "no number in 'town'"
    assert JsonLineFormat(reader).read(b'{"a":1}\n{"b', last=False)[1] == 8


def test_postcodes_are_not_numbers(tmp_path, policy):
    age = {"role": "quasi", "hierarchy": {"prefix": 2}}
    columns = RULES["columns"] | {"age": age, "postcode": "quasi", "unit_code": "plain"}
    (tmp_path / "in.csv").write_text(
        "who,age,town,note,postcode,unit_code,ill\np,30,1,007,10115,4,a\nq,31,1a,7,1,4,b\n"
    )
    release(Policy.from_dict(RULES | {"columns": columns}, base=tmp_path), tmp_path, tmp_path / "in.csv")
    shown = [line["quasi"] | line["plain"] for line in lines(tmp_path / "out.ndjson") if line["type"] == "record"]
    assert [cells["town"] for cells in shown] == [1, "1a"]
    assert [cells["note"] for cells in shown] == ["007", 7]
    assert {type(cells[name]) for cells in shown for name in ("age", "postcode", "unit_code")} == {str}


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_ndjson_keeps_its_types(policy, tmp_path, block):
    cells = [("20", "01234", True), ("21", "99999", False), ("22", 7, True), (None, "8", 5)]
    records = [
        {"who": f"p{i}", "age": age, "town": town, "note": note, "ill": "abc"[i % 3]}
        for i, (age, town, note) in enumerate(cells * 5)
    ]
    (tmp_path / "in.ndjson").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    release(policy, tmp_path, tmp_path / "in.ndjson", block=block)
    found = [line for line in lines(tmp_path / "out.ndjson") if line["type"] == "record"]
    for line, record in zip(found, records, strict=True):
        shown = line["quasi"] | line["plain"]
        assert all(shown[name] == record[name] and type(shown[name]) is type(record[name]) for name in shown)
    assert verify(str(tmp_path / "out.ndjson"), policy).holds


def test_ndjson_numbers_stay_numbers(policy, tmp_path):
    records = [{"who": i, "age": 20 + i, "town": 1.5, "note": i % 2 == 0, "ill": "abc"[i % 3]} for i in range(12)]
    (tmp_path / "in.ndjson").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    release(policy, tmp_path, tmp_path / "in.ndjson")
    found = [line for line in lines(tmp_path / "out.ndjson") if line["type"] == "record"]
    assert [line["quasi"] for line in found] == [{"age": 20 + i, "town": 1.5} for i in range(12)]
    assert [line["plain"]["note"] for line in found] == [i % 2 == 0 for i in range(12)]


@pytest.mark.parametrize(
    ("change", "source", "text"),
    [
        ({"prior": {}}, "in.csv", "who,age,town,note,ill\np,1,t,x,a\n"),
        ({"person": None}, "in.csv", "who,age,town,note,ill\np,1,t,x,a\n"),
        ({"stream": {"method": "sealed"}}, "in.csv", "who,age,town,note,ill\np,1,t,x,a\n"),
        ({}, "in.csv", "who,age,town,note\np,1,t,x\n"),
        ({}, "in.hl7", "MSH|^~\\&|A\r"),
        ({}, "nowhere.csv", None),
        ({}, "mllp://127.0.0.1:0", None),
        ({"hl7": "adt"}, "mllp://127.0.0.1:99999", None),
    ],
)
def test_a_refused_stream_leaves_nothing_behind(policy, tmp_path, capsys, change, source, text):
    (tmp_path / "policy.json").write_text(json.dumps(RULES | change))
    if text is not None:
        (tmp_path / source).write_text(text)
    there = sorted(path.name for path in tmp_path.iterdir())
    at = source if "://" in source else str(tmp_path / source)
    places = ["--store", str(tmp_path / "s.db"), "--to", str(tmp_path / "out.ndjson")]
    with pytest.raises(SystemExit) as done:
        main(["stream", at, "-p", str(tmp_path / "policy.json"), *places])
    assert done.value.code in (2, 3, 4, 5)
    assert capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def cli(folder, *more, **options):
    command = [sys.executable, "-m", "reticent", "stream", "-", "-p", str(folder / "policy.json")]
    return subprocess.Popen([*command, "--store", str(folder / "s.db"), *more], **options)


def test_a_pipe_is_released_at_once_and_ends_on_sigterm(policy, tmp_path):
    """Each record comes out before the next one is written: nothing waits for more input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with cli(tmp_path, "--dead-letters", str(tmp_path / "dead"), **pipes) as process:
        process.stdin.write(b"who,age,town,note,ill\n")
        for i, row in enumerate([*rows(2), "bad", *rows(1, 2)]):
            process.stdin.write(row.encode() + b"\n")
            process.stdin.flush()
            while row != "bad" and (line := orjson.loads(process.stdout.readline()))["type"] != "record":
                pass
            assert row == "bad" or line["seq"] == i
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert [line["seq"] for line in lines(tmp_path / "dead")] == [2]
    assert ((tmp_path / "dead").stat().st_mode & 0o777) == 0o600


def test_a_replayed_pipe_is_skipped(policy, tmp_path):
    text = "who,age,town,note,ill\n" + "\n".join(rows(50)) + "\n"
    for part in (text, text + "\n".join(rows(50, 50)) + "\n"):
        out = ("--to", str(tmp_path / "out.ndjson"), "--replayed", "--json")
        with cli(tmp_path, *out, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            told, _ = process.communicate(part.encode())
    assert orjson.loads(told.splitlines()[-1])["published"] == 100
    assert seqs(tmp_path / "out.ndjson") == list(range(100))


def test_castle_keeps_records_pending_and_closes(policy, tmp_path):
    rules = RULES | {"privacy": {"k": 3}, "stream": {"method": "castle", "delta": 20}}
    policy = Policy.from_dict(rules, base=tmp_path)
    (tmp_path / "in.csv").write_text("who,age,town,note,ill\n" + "\n".join(rows(200)) + "\n")
    done = release(policy, tmp_path, tmp_path / "in.csv", block=500)
    assert done.records.withheld == 0
    assert done.records.published + done.records.suppressed == 200
    assert len(set(seqs(tmp_path / "out.ndjson"))) == done.records.published
    assert verify(str(tmp_path / "out.ndjson"), policy).holds


def test_the_output_of_another_stream_is_not_written_over(policy, tmp_path, capsys):
    (tmp_path / "in.csv").write_text("who,age,town,note,ill\n" + "\n".join(rows(30)) + "\n")
    release(policy, tmp_path, tmp_path / "in.csv")
    before = (tmp_path / "out.ndjson").read_bytes()
    with pytest.raises(ConnectorError, match="already exists"), Stream(policy, store=tmp_path / "new.db") as stream:
        stream.run(str(tmp_path / "in.csv"), str(tmp_path / "out.ndjson"))
    places = ["--store", str(tmp_path / "newer.db"), "--to", str(tmp_path / "out.ndjson")]
    with pytest.raises(SystemExit) as done:
        main(["stream", str(tmp_path / "in.csv"), "-p", str(tmp_path / "policy.json"), *places])
    assert done.value.code == 5
    assert "already exists" in capsys.readouterr().err
    assert not (tmp_path / "newer.db").exists()
    assert (tmp_path / "out.ndjson").read_bytes() == before


def test_a_sink_that_lost_bytes_or_is_not_ours_is_refused(policy, tmp_path):
    (tmp_path / "in.csv").write_text("who,age,town,note,ill\n" + "\n".join(rows(20)) + "\n")
    (tmp_path / "mine.txt").write_text("a letter")
    with pytest.raises(ConnectorError, match="already exists"):
        release(policy, tmp_path, tmp_path / "in.csv", sink="mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "a letter"
    assert not (tmp_path / "mine.txt.codebook.json").exists()
    release(policy, tmp_path, tmp_path / "in.csv")
    (tmp_path / "out.ndjson").write_bytes(b"")
    with pytest.raises(StateError, match="bytes"):
        release(policy, tmp_path, tmp_path / "in.csv")


def test_a_missing_source_is_said_so():
    with pytest.raises(ConnectorError, match="cannot be read"):
        FileSource("no such file")
    with pytest.raises(ConnectorError, match="is a folder"):
        FileSource(".")


def test_a_named_pipe_is_opened_once(policy, tmp_path):
    """A program that opens a pipe only to look, and closes it again, ends its writer."""
    pipe = tmp_path / "feed.csv"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "reticent", "stream", pipe, "-p", tmp_path / "policy.json"]
    command += ["--store", tmp_path / "s.db", "--to", tmp_path / "out.ndjson"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        writer = os.open(pipe, os.O_WRONLY)
        os.write(writer, b"who,age,town,note,ill\n")
        for row in rows(50):
            os.write(writer, row.encode() + b"\n")
        os.close(writer)
        assert process.wait(timeout=120) == 0
    assert seqs(tmp_path / "out.ndjson") == list(range(50))


def test_a_port_is_tried_without_letting_anybody_in(monkeypatch):
    """A sender that came in while the port is only tried would be thrown out again."""
    from reticent.connectors.hl7 import mllp

    heard = []
    monkeypatch.setattr(mllp.socket.socket, "listen", lambda *_: heard.append(1), raising=True)
    mllp.check_port("mllp://127.0.0.1:0")
    assert not heard
    monkeypatch.undo()
    with mllp.socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConnectorError, match="cannot listen"):
        mllp.check_port(f"mllp://127.0.0.1:{taken.getsockname()[1]}")


def cells(number):
    ills = ("flu", "asthma", "gicht", "röteln")
    return [(f"p{at}", str(20 + at % 50), "männlich" if at % 2 else "weiblich", ills[at % 4]) for at in range(number)]


def lines_of(path, tmp_path):
    rules = {"version": 1, "person": "id", "columns": {"id": "identifier", "alter": "quasi", "sex": "quasi"}}
    rules["columns"]["ill"] = "sensitive"
    (tmp_path / "prior.csv").write_text("value,count\nflu,5\nasthma,5\ngicht,5\nröteln,5\n", encoding="utf-8")
    policy = Policy.from_dict(rules | {"privacy": {"l": 2}, "prior": {"file": "prior.csv"}}, base=tmp_path)
    with Stream(policy, store=tmp_path / f"{path.name}.db", seed=1) as stream:
        done = stream.run(str(path), str(tmp_path / f"{path.name}.out"))
        again = stream.run(str(path), str(tmp_path / f"{path.name}.out"))
    assert (done.records.published, done.dead_letters, again.records.published) == (60, 0, 60)
    return [json.loads(line) for line in (tmp_path / f"{path.name}.out").read_text(encoding="utf-8").splitlines()]


def test_files_of_any_format_and_encoding_are_read_as_lines(tmp_path):
    header, rows = ["id", "alter", "sex", "ill"], cells(60)
    text = "\n".join(";".join(cells) for cells in [header, *rows]) + "\n"
    (tmp_path / "utf8.csv").write_text(text, encoding="utf-8")
    (tmp_path / "latin.csv").write_text(text, encoding="latin-1")
    (tmp_path / "wide.csv").write_text(text, encoding="utf-16")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    wanted = lines_of(tmp_path / "utf8.csv", tmp_path)
    assert [line["quasi"]["sex"] for line in wanted[:2]] == ["weiblich", "männlich"]
    for name in ("latin.csv", "wide.csv", "packed.csv.gz"):
        assert lines_of(tmp_path / name, tmp_path) == wanted, name
    assert len(lines_of(tmp_path / "table.parquet", tmp_path)) == 60


def test_a_file_that_cannot_be_read_as_lines_is_left_closed(tmp_path):
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"who,age\n" * 200_000)[:-300])  # it breaks off after the first lines
    before = psutil.Process().num_fds()
    with pytest.raises(ReticentError):
        FileSource(str(path))
    with pytest.raises(ReticentError):
        FileSource(str(tmp_path))
    assert psutil.Process().num_fds() == before


def test_a_few_broken_lines_are_set_aside_and_no_reason_to_read_all_in_another_way(tmp_path):
    rows = [f"p{at};{20 + at};m;flu\n".encode() for at in range(60)]
    rows[7] = b"p7;27;\xff;flu\n"
    (tmp_path / "in.csv").write_bytes(b"id;alter;sex;ill\n" + b"".join(rows))
    with closing(FileSource(str(tmp_path / "in.csv"))) as file:
        assert b"\xff" in file.read()


def test_a_decimal_comma_is_a_point_where_semicolons_part_the_cells(tmp_path):
    reader = RecordReader(Policy.from_dict({"version": 1, "columns": {"weight": "quasi", "note": "plain"}}))
    for text, weight in ((b"weight;note\n75,3;a,b\n", "75.3"), (b'weight,note\n"75,3","a,b"\n', "75,3")):
        lines = CsvLineFormat(reader)
        header, _, body = text.partition(b"\n")
        lines.begin(header)
        batch, size = lines.read(body, last=True)
        assert (batch.table["weight"].to_pylist(), batch.table["note"].to_pylist()) == ([weight], ["a,b"])
        assert size == len(body)
        (tmp_path / "in.csv").write_bytes(text)
        assert read_table(tmp_path / "in.csv")["weight"].to_pylist() == [weight]


@pytest.mark.parametrize(
    ("line", "delimiter"),
    [
        (b'"a, b",c,d\n', ","),
        (b'"a, b";c;d\n', ";"),
        (b'"a, b", c ,"d"\n', ","),
        (b"\xef\xbb\xbf" + b'"a, b"\tc\td\n', "\t"),
    ],
)
def test_a_header_is_read_as_csv(line, delimiter):
    reader = RecordReader(Policy.from_dict({"version": 1, "columns": dict.fromkeys(["a, b", "c", "d"], "quasi")}))
    lines = CsvLineFormat(reader)
    lines.begin(line)
    batch, _ = lines.read(delimiter.join("123").encode() + b"\n", last=True)
    assert batch.table.to_pylist() == [{"a, b": "1", "c": "2", "d": "3"}]
