"""`reticent verify` as a script sees it: exit code, words on standard error, JSON on standard output."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import reticent
from reticent.cli import main
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, exclusions

POLICY = """
version: 1
columns: {age: quasi, ill: sensitive}
privacy: {k: 2, l: 2}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    data = pa.table({"age": ["*"] * 4, "ill": ["flu", "ulcer", "flu", "ulcer"]})
    claims = Guarantee({"k": 2, "l": {"distinct": 2}}, AGAINST["generalized"], exclusions())
    Release("table", "generalized", "optimal", {"data": data}, claims, RecordCounts(4, 4, 0, 0), "").to_dir(
        tmp_path / "r"
    )
    return tmp_path


def run(*args):
    try:
        main(["verify", *map(str, args)])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_a_good_release_exits_0(folder, capsys):
    assert run(folder / "r", "-p", folder / "policy.yaml", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["holds"] is True
    assert "Every claim holds" in err


def test_a_refuted_claim_exits_4(folder, capsys):
    data = folder / "r" / "data.csv"
    data.write_text(data.read_text().replace('"*","flu"', '"SECRET","flu"', 1))
    assert run(folder / "r", "-p", folder / "policy.yaml", "--json") == 4
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["holds"] is False
    assert "REFUTED" in err
    assert "SECRET" not in out + err


def test_one_line_per_claim_unless_all_is_asked_for(folder, capsys):
    words = {}
    for options in ((), ("--all",)):
        run(folder / "r", "-p", folder / "policy.yaml", *options)
        words[options] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("  holds")]
    assert [line.split()[1] for line in words[()]] == ["k", "l", "format,"]
    folded, checks = int(words[()][-1].split()[-2]), len(words[("--all",)])
    assert folded + 2 == checks > 5


def test_a_failing_check_of_form_is_shown(folder, capsys):
    (folder / "r" / "stray.txt").write_text("x")
    assert run(folder / "r", "-p", folder / "policy.yaml") == 4
    assert "FAILS    the folder contains only files that the manifest lists" in capsys.readouterr().err


def test_what_is_no_release_exits_3(folder):
    assert run(folder / "nowhere", "-p", folder / "policy.yaml") == 3
    (folder / "r" / "release.json").write_text("{")
    assert run(folder / "r", "-p", folder / "policy.yaml") == 3


UNREADABLE = ["five", None, [], [5, 5], float("nan"), float("inf"), -1, 0, 10**400, {"persons": "x"}, {"recursive": 3}]


@pytest.mark.parametrize("model", ["k", "l", "t", "posterior", "population_uniqueness"])
@pytest.mark.parametrize("claim", UNREADABLE, ids=lambda claim: repr(claim)[:12])
def test_a_claim_that_nobody_can_read_is_refuted(folder, model, claim):
    file = folder / "r" / "release.json"
    manifest = json.loads(file.read_text())
    manifest["guarantee"]["claims"][model] = claim
    file.write_text(json.dumps(manifest))
    assert run(folder / "r", "-p", folder / "policy.yaml") == 4


def test_what_a_shape_cannot_keep_is_refuted_where_the_policy_asks_for_it(tmp_path, capsys):
    """Groups have no classes: the demand was passed over in silence."""
    rules = {"version": 1, "columns": {"age": "quasi", "ill": "sensitive"}, "privacy": {"l": 2}}
    table = pa.table({"age": [str(age) for age in range(8)], "ill": ["flu", "ulcer"] * 4})
    reticent.anonymize(table, Policy.from_dict(rules), method="anatomy", seed=1).to_dir(tmp_path / "r")
    for privacy, code in (({"l": 2}, 0), ({"l": 2, "average_risk": 0.5}, 4)):
        (tmp_path / "policy.json").write_text(json.dumps(rules | {"privacy": privacy}))
        assert run(tmp_path / "r", "-p", tmp_path / "policy.json") == code
    assert "average_risk" in capsys.readouterr().err


def test_a_bad_policy_exits_2(folder):
    assert run(folder / "r", "-p", folder / "absent.yaml") == 2
