"""What is written comes back: every format, every dialect, nulls apart from empty texts."""

import csv
import gzip
import io
import stat
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.connectors.files import (
    checked_stream,
    read_batches,
    read_head,
    read_table,
    write_batches,
    write_table,
    write_text,
)
from reticent.connectors.files.sniff import Format
from reticent.errors import ConnectorError, PolicyError

CELLS = st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6))
KINDS = ("csv", "parquet", "arrow", "ndjson")


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.sampled_from(KINDS))
@example([(None, "\ufffd")], "csv")
@example([("\x80", "\ufffd"), ("M\ufffdller", None)], "csv")
def test_text_survives_every_format(tmp_path_factory, rows, kind):
    path = tmp_path_factory.mktemp("round") / f"t.{kind}"
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.string())}
    )
    write_table(table, path)
    assert read_table(path).equals(table)
    assert pa.Table.from_batches(read_batches(path, batch_rows=3)).equals(table)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "ndjson"])
def test_types_survive_where_the_format_has_them(tmp_path, kind):
    table = pa.table({"n": [1, None, 3], "x": [0.5, 2.0, None], "b": [True, False, None], "s": ["a", None, ""]})
    write_table(table, tmp_path / f"t.{kind}")
    assert read_table(tmp_path / f"t.{kind}").equals(table)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_dialects_are_detected(tmp_path, delimiter, encoding):
    path = tmp_path / "t.csv"
    rows = [["name", "plz"], ["Müller", "01067"], ["Groß, Ltd; | \t x", "NA"], ["", "00000"]]
    text = "".join(delimiter.join(f'"{c}"' if set(c) & set(",;|\t") else c for c in row) + "\r\n" for row in rows)
    path.write_bytes(text.encode(encoding))
    expected = {"name": ["Müller", "Groß, Ltd; | \t x", None], "plz": ["01067", "NA", "00000"]}
    assert read_table(path).to_pydict() == expected
    with path.open("rb") as stream:
        assert read_table(stream).to_pydict() == expected


def test_apostrophes_quote_when_nothing_else_does(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("'a','b'\n'x,y','1'\n'z','2'\n")
    assert read_table(path).to_pydict() == {"a": ["x,y", "z"], "b": ["1", "2"]}


def test_an_apostrophe_in_a_name_is_no_quote(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nO'Neil,1\nD'Arcy,2\n")
    assert read_table(path)["a"].to_pylist() == ["O'Neil", "D'Arcy"]


def test_empty_cells_are_null_and_quoted_empty_cells_are_text():
    assert read_table(io.BytesIO(b'a,b\n,""\n')).to_pydict() == {"a": [None], "b": [""]}


def test_a_missing_value_in_a_single_column_is_kept():
    assert read_table(io.BytesIO(b"a\n1\n\n3\n"))["a"].to_pylist() == ["1", None, "3"]


def test_cells_may_span_lines_and_blocks():
    cell = "x\n" * 500_000
    table = read_table(io.BytesIO(f'a,b\n1,2\n3,"{cell}"\n5,"{cell}"\n'.encode() * 1))
    assert table["b"].to_pylist() == ["2", cell, cell]


def test_columns_as_asked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n01,2,x\n")
    assert next(read_batches(path, columns=["b", "a"])).to_pydict() == {"b": ["2"], "a": ["01"]}


def test_gzip_is_unpacked(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(path).to_pydict() == {"a": ["1"], "b": ["2"]}
    plain = tmp_path / "t.parquet"
    write_table(pa.table({"a": [1]}), plain)
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_table(packed).to_pydict() == {"a": [1]}


@pytest.mark.parametrize("kind", KINDS)
def test_streams_work_where_files_do(tmp_path, kind, monkeypatch, capfdbinary):
    table = pa.table({"a": ["x", "y"]})
    write_table(table, tmp_path / f"t.{kind}")
    with (tmp_path / f"t.{kind}").open("rb") as raw:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))
        assert read_table("-").equals(table)
    write_table(table, Path("-"), kind)
    assert read_table(io.BytesIO(capfdbinary.readouterr().out)).equals(table)


def test_arrow_streams_are_read(tmp_path):
    table = pa.table({"a": ["x", "y"]})
    with pa.OSFile(str(tmp_path / "t.arrows"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert read_table(tmp_path / "t.arrows").equals(table)


def test_ndjson_fields_may_come_and_go():
    lines = b'{"a": 1}\n\n{"b": "x", "a": 2.5}\n{"c": null}\n'
    assert read_table(io.BytesIO(lines)).to_pydict() == {"a": [1.0, 2.5, None], "b": [None, "x", None], "c": [None] * 3}


def test_ndjson_mixed_fields_become_text():
    lines = b'{"a": 1}\n{"a": "x"}\n{"a": true}\n'
    assert read_table(io.BytesIO(lines))["a"].to_pylist() == ["1", "x", "true"]


def test_dictionaries_are_written_as_values(tmp_path):
    batches = [pa.record_batch({"a": pa.array(v).dictionary_encode()}) for v in (["x", "y"], ["z", None])]
    for kind in ("csv", "arrow", "ndjson", "parquet"):
        write_batches(batches[0].schema, batches, tmp_path / f"t.{kind}")
        assert read_table(tmp_path / f"t.{kind}")["a"].to_pylist() == ["x", "y", "z", None]


def test_written_files_belong_to_their_owner_alone(tmp_path):
    path = tmp_path / "t.csv"
    write_table(pa.table({"a": [1]}), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_table(pa.table({"a": [1]}), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").is_file()
    write_table(pa.table({"a": [1]}), "/dev/null", "csv")
    assert Path("/dev/null").is_char_device()


def test_a_failing_producer_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def batches():
        yield pa.record_batch({"a": [1]})
        raise ConnectorError("gone")

    with pytest.raises(ConnectorError):
        write_batches(pa.schema([("a", pa.int64())]), batches(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_formats_are_named():
    with pytest.raises(PolicyError, match="unknown file format"):
        write_table(pa.table({"a": [1]}), "t.xlsx")


def test_format_is_a_plain_value():
    assert replace(Format("csv"), delimiter=";") == Format("csv", delimiter=";")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_head_of_a_large_file(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    write_table(pa.table({"a": [str(i) for i in range(400_000)], "b": ["some text"] * 400_000}), path)
    for rows in (1, 10, 70_000):
        assert read_head(path, rows)["a"].to_pylist() == [str(i) for i in range(rows)]
    assert read_head(path, 500_000).num_rows == 400_000


def test_texts_replace_files_whole(tmp_path):
    write_text(tmp_path / "t", "ä")
    assert (tmp_path / "t").read_bytes() == "ä".encode()


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2", b"a,b\r\n1,2", b'{"a": "1", "b": "2"}', b"\xef\xbb\xbfa;b\n1;2", b"a,b\r1,2"]
)
def test_the_last_line_needs_no_end(content):
    assert read_table(io.BytesIO(content)).to_pydict() == {"a": ["1"], "b": ["2"]}


@given(
    st.lists(
        st.tuples(*[st.text(st.sampled_from("xé\",\n\r;'"), min_size=1, max_size=5)] * 2), min_size=1, max_size=12
    ),
    st.integers(1, 40),
    st.booleans(),
)
def test_where_blocks_are_cut_does_not_matter(rows, size, quote_all):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL).writerows([("a", "b"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_stream, "_BLOCK", size)
        patch.setattr("reticent.connectors.files.read.sniff", lambda _: Format("csv"))
        table = read_table(io.BytesIO(text.getvalue().encode()))
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows
