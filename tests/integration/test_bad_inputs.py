"""What goes wrong at the command line: a clear message, the right exit code, nothing half-written, no cell shown."""

import os
import resource
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.cli import main

POLICY = """
version: 1
columns:
  name: identifier
  age: {role: quasi, hierarchy: {intervals: [10]}}
  sex: quasi
  ill: sensitive
privacy: {l: 2}
"""
ROWS = "name,age,sex,ill\n" + "".join(f"p{i},{20 + i},m,{'flu' if i % 2 else 'cold'}\n" for i in range(20))
CANARY = "Zyxwvut"


def call(capfd, *args):
    """Runs a command; gives its exit code and all it printed."""
    try:
        main([str(a) for a in args])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    out = capfd.readouterr()
    return code, out.out + out.err


@pytest.fixture
def place(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def attempt(place, capfd, content, policy=POLICY, name="data.csv"):
    (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (place / "policy.yaml").write_text(policy)
    before = sorted(place.iterdir())
    code, said = call(
        capfd, "anonymize", place / name, "-p", place / "policy.yaml", "--method", "anatomy", "-o", place / "out"
    )
    if code:
        assert sorted(place.iterdir()) == before, "something was left behind"
    return code, said


def test_the_good_case(place, capfd):
    code, _ = attempt(place, capfd, ROWS)
    assert code == 0
    names = ["README.txt", "codebook.json", "qit.csv", "release.json", "st.csv"]
    assert sorted(p.name for p in (place / "out").iterdir()) == names
    code, said = call(capfd, "verify", place / "out", "-p", place / "policy.yaml")
    assert code == 0, said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("name,age,sex,ill\n", "no rows"),
        (ROWS + f"{CANARY},1,m\n", "line 22"),
        (ROWS + f"{CANARY},1,m,flu,{CANARY}\n", "line 22"),
        (ROWS.replace("p3", CANARY).encode() + b"\xff\xfe\xfa\x81,1,m,flu\n", "line"),
        (ROWS.replace("name,age", "age,age"), "same name"),
        (ROWS.replace("p3", CANARY).encode() + b"a\0b,1,m,flu\n", "NUL"),
        (ROWS + f'"{CANARY},1,m,flu\n', "quote"),
        (ROWS.replace("20,m", f"{CANARY},m"), "'age'"),
        (ROWS.replace("20,m", "nan,m"), "'age'"),
        (ROWS.replace("20,m", "inf,m"), "'age'"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), ""),
    ],
    ids=[
        "empty",
        "header",
        "short-row",
        "long-row",
        "encoding",
        "twice",
        "nul",
        "quote",
        "no-number",
        "nan",
        "inf",
        "binary",
    ],
)
def test_bad_data(place, capfd, content, words):
    code, said = attempt(place, capfd, content)
    assert code == 3, said
    assert words in said
    assert CANARY not in said
    assert "Traceback" not in said


def test_one_endless_line(place, capfd):
    code, said = attempt(place, capfd, b"name,age,sex,ill\n" + b"x" * (40 << 20))
    assert code == 3, said
    assert "longer than" in said


def test_typed_nan(place, capfd):
    pq.write_table(
        pa.table({"name": ["a", "b"], "age": [1.0, float("nan")], "sex": ["m", "m"], "ill": ["x", "y"]}),
        place / "data.parquet",
    )
    code, said = call(
        capfd,
        "anonymize",
        place / "data.parquet",
        "-p",
        place / "policy.yaml",
        "--method",
        "anatomy",
        "-o",
        place / "out",
    )
    assert (code, "'age'" in said) == (3, True), said
    assert not (place / "out").exists()


@pytest.mark.parametrize(
    ("policy", "words", "tree"),
    [
        (POLICY.replace("age:", "agee:"), "did you mean", None),
        (POLICY.replace("  sex: quasi\n", ""), "without a role", None),
        (POLICY.replace("privacy: {l: 2}", "privacy: {l: 0}"), "line 8", None),
        (POLICY.replace("sex: quasi", "sex: {role: quasi, hierarchy: {file: t.csv}}"), "cycle", "m;f;x;*\nf;m;x;*\n"),
        (POLICY.replace("sex: quasi", "sex: {role: quasi, hierarchy: {file: t.csv}}"), "roots", "m;a\nf;b\n"),
        (POLICY.replace("sex: quasi", "sex: {role: quasi, hierarchy: {file: no.csv}}"), "no.csv", None),
        ("version: 1\ncolumns: [", "YAML", None),
    ],
    ids=["absent-column", "no-role", "l0", "cycle", "two-roots", "no-file", "not-yaml"],
)
def test_bad_policies(place, capfd, policy, words, tree):
    if tree:
        (place / "t.csv").write_text(tree)
    code, said = attempt(place, capfd, ROWS, policy)
    assert code == 2, said
    assert words in said


def test_a_policy_that_cannot_be_met(place, capfd):
    code, said = attempt(place, capfd, ROWS, POLICY.replace("l: 2", "l: 3"))
    assert code == 4, said
    assert "lower l to 2" in said


def test_missing_input_and_wrong_usage(place, capfd):
    assert call(capfd, "anonymize", place / "no.csv", "-p", place / "policy.yaml", "-o", place / "out")[0] == 3
    assert call(capfd, "anonymize", place / "no.csv")[0] == 2
    assert call(capfd, "anonimize")[0] == 2
    assert call(capfd, "verify", place / "nowhere", "-p", place / "policy.yaml")[0] == 3


def test_an_output_that_is_taken(place, capfd):
    (place / "out").mkdir()
    (place / "out" / "precious").write_text("x")
    code, said = attempt(place, capfd, ROWS)
    assert code == 5, said
    assert (place / "out" / "precious").read_text() == "x"


def test_a_read_only_folder(place, capfd):
    (place / "data.csv").write_text(ROWS)
    locked = place / "locked"
    locked.mkdir(mode=0o555)
    place.chmod(0o755)
    for folder in place.parents:
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # nobody: root may write anywhere
    try:
        code, said = call(
            capfd,
            "anonymize",
            place / "data.csv",
            "-p",
            place / "policy.yaml",
            "--method",
            "anatomy",
            "-o",
            locked / "out",
        )
    finally:
        if root:
            os.seteuid(0)
    assert code == 5, said
    assert "Permission" in said
    assert not list(locked.iterdir())


def test_a_full_disk(place):
    """A file-size limit makes the kernel refuse the write in the middle, as a full disk does."""
    rows = "name,age,sex,ill\n" + "".join(f"p{i},{20 + i % 60},m,{'flu' if i % 2 else 'cold'}\n" for i in range(20_000))
    (place / "data.csv").write_text(rows)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "reticent",
            "anonymize",
            "data.csv",
            "-p",
            "policy.yaml",
            "--method",
            "anatomy",
            "-o",
            "out",
        ],
        cwd=place,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "nothing was published" in done.stderr
    assert sorted(p.name for p in place.iterdir()) == ["data.csv", "policy.yaml"]


SPOILED = st.text(alphabet="abcXYZ0189,;\"'\n\t ", min_size=3, max_size=12)


@settings(max_examples=40)
@given(st.lists(SPOILED, min_size=1, max_size=6), st.sampled_from(["age", "sex", "ill", "name"]), st.booleans())
def test_no_cell_in_any_message(tmp_path_factory, cells, column, ragged):
    """Whatever stands in the cells, no message repeats it."""
    place = tmp_path_factory.mktemp("canary")
    marked = [f"{CANARY}{cell}" for cell in cells]
    at = ["name", "age", "sex", "ill"].index(column)
    lines = [["n", "30", "m", "flu"] for _ in marked]
    for line, cell in zip(lines, marked, strict=True):
        line[at] = cell
    text = "name,age,sex,ill\n" + "".join(",".join(line) + ("," if ragged else "") + "\n" for line in lines)
    (place / "data.csv").write_text(text)
    (place / "policy.yaml").write_text(POLICY)
    said = capture(
        [
            "anonymize",
            str(place / "data.csv"),
            "-p",
            str(place / "policy.yaml"),
            "--method",
            "anatomy",
            "-o",
            str(place / "out"),
        ]
    )
    said += capture(["init", str(place / "data.csv"), "-o", str(place / "guess.yaml")])
    assert CANARY not in said


def capture(args):
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main(args)
    return text.getvalue()
