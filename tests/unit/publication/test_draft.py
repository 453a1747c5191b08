"""Drafts: verified like releases, kept private, unknown to every ledger, and compared."""

import json
import stat

import pyarrow as pa
import pytest
import yaml

import reticent
from reticent.cli import main
from reticent.errors import PolicyError

ROWS = 80
TABLE = pa.table(
    {
        "who": [str(i) for i in range(ROWS)],
        "sex": ["F", "M"] * (ROWS // 2),
        "town": [f"CANARY{i % 5}" for i in range(ROWS)],
        "ill": ["flu", "cold", "gout", "asthma"] * (ROWS // 4),
    }
)
SETTINGS = {
    "version": 1,
    "person": "who",
    "columns": {"who": "identifier", "sex": "quasi", "town": "quasi", "ill": "sensitive"},
    "privacy": {"k": 9},
    "table": {"method": "local"},
}


def run(*words):
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code or 0


@pytest.mark.parametrize(
    "named",
    [{"important": ["sex", "town"]}, {"weights": {"sex": 2, "town": 2}}, {"purpose": "model", "target": "town"}],
)
def test_a_column_that_another_setting_names_is_not_dropped(named):
    """The costliest column as an identifier would be no policy: that is no alternative, and no reason to make no draft."""
    settings = SETTINGS | {"table": {"method": "auto"} | named}
    draft = reticent.draft(TABLE, reticent.Policy.from_dict(settings), seed=1)
    assert not any("as identifier" in one.change for one in draft.alternatives)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(SETTINGS))
    rows = zip(*(column.to_pylist() for column in TABLE.columns), strict=True)
    (tmp_path / "data.csv").write_text("\n".join([",".join(TABLE.column_names), *map(",".join, rows)]) + "\n")
    return tmp_path


def test_what_would_help_is_tried():
    draft = reticent.draft(TABLE, reticent.Policy.from_dict(SETTINGS), seed=1)
    changes = {one.change: one for one in draft.alternatives}
    assert set(changes) <= {"k = 8", "'sex' as identifier", "'town' as identifier"}
    assert changes["k = 8"].after < changes["k = 8"].before
    without = reticent.Policy.from_dict(SETTINGS | {"privacy": {"k": 8}})
    columns = reticent.anonymize(TABLE, without, seed=1).explain["attributes"]
    assert changes["k = 8"].after == pytest.approx(sum(c["loss"] for c in columns.values()) / 2)


def test_a_draft_publishes_nothing_and_no_ledger_knows_of_it(folder):
    assert run("anonymize", "data.csv", "-p", "p.yaml", "--store", "s.db", "--draft", "-o", "drafts") == 0
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "drafts", "p.yaml"]
    (kept,) = (folder / "drafts").iterdir()
    assert "CANARY" not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert run("anonymize", "data.csv", "-p", "p.yaml", "--store", "s.db", "-o", "release") == 0


def test_drafts_are_compared(folder, capsys):
    (folder / "q.yaml").write_text(yaml.safe_dump(SETTINGS | {"privacy": {"k": 41}}))
    for policy in ("q.yaml", "p.yaml"):
        assert run("anonymize", "data.csv", "-p", policy, "--draft", "-o", "drafts") == 0
    capsys.readouterr()
    assert run("drafts", "drafts", "--json") == 0
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in err.splitlines()[1:3]] == [["2", "p.yaml"], ["1", "q.yaml"]]
    assert [entry["privacy"]["k"] for entry in json.loads(out)["drafts"]] == [9, 41]


def test_no_draft_no_comparison(folder):
    assert run("drafts", "drafts") == 3


def test_a_keyed_method_has_no_drafts(folder):
    (folder / "prior.csv").write_text("value,count\nflu,20\ncold,20\ngout,20\nasthma,20\n")
    policy = reticent.Policy.from_dict(SETTINGS | {"privacy": {"l": 2}, "prior": {"file": "prior.csv"}})
    with pytest.raises(PolicyError, match="does not support drafts"):
        reticent.draft(TABLE, policy, method="veil")
