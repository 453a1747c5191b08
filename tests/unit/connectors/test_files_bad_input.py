"""Bad files: each a clear error with the place, never a cell, never a partial result."""

import errno
import gzip
import io
import os
import re
import subprocess
import sys
import traceback

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.connectors.files import atomic_file, read_batches, read_table, write_table
from reticent.errors import ConnectorError, DataError, ReticentError

BAD = {
    "empty": (b"", "is empty"),
    "blank lines": (b"\n\n\n", "no readable header line"),
    "header only": (b"a,b\n", "has no rows"),
    "header only, no line end": (b"a,b", "has no rows"),
    "header and blank lines": (b"a,b\n\n\n", "has no rows"),
    "short row": (b"a,b,c\n1,2,3\n4,5\n", "line 3: expected 3 cells as in the header, found 2"),
    "long row": (b"a,b\n1,2\n3,4\n5,6,7,8\n", "line 4: expected 2 cells as in the header, found 4"),
    "ragged after a cell of two lines": (b'a,b\n"1\n1",2\n3\n', "line 4: expected 2 cells"),
    "duplicate names": (b"a,b,a\n1,2,3\n", "columns 1 and 3 have the same name"),
    "no name at all": (b",\n,\n", "column 1 has no name"),
    "nameless column": (b"a,,c\n1,2,3\n", "column 2 has no name"),
    "cells without a name": (b"a,b,\n1,2,\n3,4,5\n", "column 3 has no name"),
    "cells without a name, later": (b"a,b,\n" + b"1,2,\n" * 60000 + b"3,4,5\n", "column 3 has no name"),
    "title above": (b"List of ward 7\na,b,c\n1,2,3\n4,5,6\n", "line 2: expected 1 cells as in the header, found 3"),
    "title above, semicolons": (b"# made by R\na;b;c\n1;2;3\n4;5;6\n", "line 2: expected 1 cells"),
    "title above, padded": (b"List of ward 7;;\na;b;c\n1;2;3\n", "column 2 has no name"),
    "NUL": (b"a,b\n1,2\n3,\x004\n", "line 3: a NUL byte"),
    "NUL in the header": (b"a,\0b\n1,2\n", "line 1: a NUL byte"),
    "neither UTF-8 nor Windows-1252": (b"a,b\n1,2\n\x81\x8d,\xff\n", "line 3: not valid UTF-8"),
    "broken UTF-8": ("a,b\nüöä,ß\n".encode() + b"\xff,1\n", "line 3: not valid UTF-8"),
    "cut UTF-16": ("a,b\n1,2\n".encode("utf-16") + b"\0", "not valid utf-16-le"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n7,8\n', "line 3: a quote is opened but never closed"),
    "bad JSON": (b'{"a": 1}\n{"a": 2\n', "line 2: not valid JSON"),
    "JSON list": (b'{"a": 1}\n\n[1]\n', "line 3: not a JSON object"),
    "JSON NaN": (b'{"a": 1}\n{"a": NaN}\n', "line 2: not valid JSON"),
    "nested JSON": (b'{"a": 1}\n{"a": {"b": 1}}\n', "line 2: field 'a' is nested"),
    "inexact JSON number": (b'{"a": 12345678901234567890123}\n', "line 1: field 'a' has a number too large"),
    "integer beyond 64 bits": (b'{"a": 1}\n{"a": 18446744073709551615}\n', "line 2: field 'a' has a number too"),
    "JSON without rows": (b"{", "not valid JSON"),
    "corrupt Parquet": (b"PAR1" + b"\0" * 64, "corrupt Parquet"),
    "corrupt Arrow": (b"ARROW1" + b"\0" * 64, "corrupt Arrow"),
    "corrupt Arrow stream": (b"\xff\xff\xff\xff\x10\0\0\0" + b"\7" * 64, "corrupt Arrow"),
    "corrupt gzip": (gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "corrupt gzip"),
}


@pytest.mark.parametrize("name", [name for name in BAD if name.startswith("title")])
def test_a_title_above_the_header_is_told(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_bytes(BAD[name][0])
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert "above" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    ["a;b;\n1;x;\n2;y;\n", "\na;;b\r\n1;;x\r\n2;;y\r\n", ';a; ;b\n;1;;x\n"";2;;y\n', 'a;"b";;\n1;x;;\n2;y;;\n'],
)
def test_columns_without_a_name_and_without_a_cell_are_none(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, newline="")
    assert read_table(path).to_pydict() == {"a": ["1", "2"], "b": ["x", "y"]}
    assert next(read_batches(path, columns=["b"])).to_pydict() == {"b": ["x", "y"]}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_their_place(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    for read in (read_table, lambda source: list(read_batches(source))):
        with pytest.raises(DataError, match=re.escape(message)) as caught:
            read(path)
        assert caught.value.hint
        with pytest.raises(DataError):
            read(io.BytesIO(content))


def test_ragged_rows_far_into_a_file_name_the_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b'1,"2\n"\n' * 3_000_000 + b"1,2,3\n" + b"1,2\n" * 10)
    with pytest.raises(DataError, match="line 6000002: expected 2 cells as in the header, found 3"):
        read_table(path)


def test_ragged_pipes_know_the_line_too():
    with pytest.raises(DataError, match="line 3: expected 2 cells as in the header, found 1"):
        read_table(io.BytesIO(b"a,b\n1,2\n3\n"))


def test_missing_files_directories_and_locked_files(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a directory"):
        read_table(tmp_path)


def test_absent_columns_get_a_suggestion(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n1,2\n")
    with pytest.raises(DataError, match=r"no column 'agee'\. Did you mean 'age'"):
        next(read_batches(path, columns=["agee"]))


def test_wrong_bytes_far_into_a_file_name_the_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 700_000 + b"\xe4\xf6,2\n")
    with pytest.raises(DataError, match="line 700002: not valid utf-8"):
        read_table(path)


class Endless(io.RawIOBase):
    """A gigabyte without a line end, made as it is read."""

    def __init__(self, start, size=1 << 30):
        self.start, self.left = start, size

    def readable(self):
        return True

    def read(self, size=-1):
        assert size > 0
        part = self.start or b"x" * min(size, self.left)
        self.start = b""
        self.left -= len(part)
        return part


@pytest.mark.parametrize("start", [b"x", b"a,b\n", b"a,b\n1,2\n", b"{", b'a,b\n1,"'])
def test_a_gigabyte_in_one_line_is_refused_after_a_few_megabytes(start):
    resource = pytest.importorskip("resource", reason="what a process has used is asked of POSIX")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = Endless(start)
    with pytest.raises(DataError, match="longer than 16 MB"):
        read_table(source)
    assert (1 << 30) - source.left < 64 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_quote_over_many_lines_is_bounded_too():
    with pytest.raises(DataError, match="longer than 16 MB"):
        read_table(io.BytesIO(b'a,b\n1,"' + b"x,y\n" * 5_000_000))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("strange", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused(tmp_path, kind, strange):
    path = tmp_path / f"t.{kind}"
    write_table(pa.table({"w": [1.0, strange, None, strange]}), path)
    with pytest.raises(DataError, match="column 'w' has 2 cells that are NaN or infinite"):
        read_table(path)


def test_nested_and_repeated_columns_of_typed_files(tmp_path):
    path = tmp_path / "t.arrow"
    write_table(pa.table({"a": [[1, 2]]}), path)
    with pytest.raises(DataError, match="column 'a' is nested"):
        read_table(path)
    write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    with pytest.raises(DataError, match="columns 1 and 2 have the same name"):
        read_table(path)
    write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="has no rows"):
        read_table(tmp_path / "t.parquet")


def test_late_surprises_in_ndjson_batches():
    with pytest.raises(DataError, match="line 3: a field that the first batch does not have"):
        list(read_batches(io.BytesIO(b'{"a":1}\n{"a":1}\n{"b":1}\n'), batch_rows=2))
    with pytest.raises(DataError, match="field 'a' changes from int64 to string"):
        list(read_batches(io.BytesIO(b'{"a":1}\n{"a":"x"}\n'), batch_rows=1))


CANARY = "Zyxwv8731Qq"


WHOLE = f"{CANARY},{CANARY}"


@example([WHOLE, CANARY], b"a,b\n", "utf-8")
@example([f'{CANARY},"{CANARY}'], b"a,b\n", "utf-8")
@example([f'{CANARY}"}}', f"{CANARY}"], b'{"a":"', "utf-8")
@given(
    st.lists(st.just(WHOLE))
    | st.lists(st.sampled_from([CANARY, f'"{CANARY}', f'{CANARY}"', "\0", "\ufffd", "", "1", f"{CANARY},{CANARY}"])),
    st.sampled_from([b"a,b\n", b"a;b\n", b'{"a":"', b'{"a": 1}\n{"a": ', b"PAR1", b"ARROW1", b"a,a\n", b"\xff\xfe"]),
    st.sampled_from(["utf-8", "utf-16-le", "cp1252"]),
)
def test_no_cell_in_any_error(cells, start, encoding):
    content = start + "\n".join(cells).encode(encoding, "replace")
    for read in (read_table, lambda source: list(read_batches(source))):
        try:
            read(io.BytesIO(content))
        except ReticentError as error:
            shown = "".join(traceback.format_exception(error)) + repr(error) + str(error)
            assert CANARY not in shown


def test_a_missing_or_locked_directory(tmp_path):
    with pytest.raises(ConnectorError, match="cannot be written: No such file"):
        write_table(pa.table({"a": [1]}), tmp_path / "none" / "t.csv")
    with pytest.raises(ConnectorError, match="is a directory"):
        write_table(pa.table({"a": [1]}), tmp_path, "csv")


LOCKED = """
import os, sys
import pyarrow as pa
from reticent.connectors.files import write_table
from reticent.errors import ConnectorError
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    write_table(pa.table({"a": [1]}), sys.argv[1])
except ConnectorError as error:
    print(error)
"""


def test_a_read_only_directory(tmp_path):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    target = tmp_path / "locked"
    target.mkdir(mode=0o555)
    run = subprocess.run(
        [sys.executable, "-c", LOCKED, str(target / "t.csv")], capture_output=True, text=True, check=True
    )
    assert "cannot be written: Permission denied" in run.stdout
    assert not list(target.iterdir())


FULL = """
import resource, signal, sys
import pyarrow as pa
from reticent.connectors.files import write_table
from reticent.errors import ConnectorError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_table(pa.table({"a": [str(i * 7919) for i in range(400_000)]}), sys.argv[1])
except ConnectorError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "ndjson"])
def test_running_out_of_room_leaves_nothing(tmp_path, kind):
    pytest.importorskip("resource", reason="a limit on the size of files is set by POSIX")
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / f"t.{kind}")], capture_output=True, text=True, check=True
    )
    assert "cannot be written: File too large" in run.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "ndjson"])
def test_a_small_full_disk(tmp_path, kind):
    """A real file system of 64 kB, where the system permits to mount one; the two tests above always run."""
    script = f'mount -t tmpfs -o size=64k none "{tmp_path}" && "$0" -c "$1" "{tmp_path}/t.{kind}"; ls -A "{tmp_path}"'
    probe = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("mounting is not allowed here")
    command = ["unshare", "-m", "sh", "-c", script, sys.executable, FULL.replace("100_000", "1 << 30")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("No partial file was left.")
    assert "cannot be written: No space left on device" in run.stdout


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "ndjson"])
def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, kind):
    def full(_):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConnectorError, match="cannot be written: No space left on device"):
        write_table(pa.table({"a": [1]}), tmp_path / f"t.{kind}")
    assert not list(tmp_path.iterdir())


def test_atomic_files_keep_the_old_content_on_failure(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"new", None])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
