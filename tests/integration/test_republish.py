"""`reticent republish` with a durable store: series on disk, crashes, refusals."""

import json
import subprocess
import sys

import pytest

from reticent.cli import main
from reticent.datasets import series as people
from reticent.errors import GuaranteeError, PolicyError, StateError
from reticent.policy import Policy
from reticent.release import Release
from reticent.stateful import Series
from reticent.store import Store
from reticent.verify import verify

POLICY = """\
version: 1
person: patient_id
columns:
  patient_id: identifier
  name: identifier
  age: {role: quasi, hierarchy: {intervals: [5, 10, 20, 40]}}
  sex: quasi
  region: quasi
  postcode: {role: quasi, hierarchy: {prefix: 5}}
  diagnosis: {role: sensitive, updates: {file: updates.csv}}
series: {method: MODEL, m: 4, max_risk: RISK}
"""


def republish(table, policy, store, folder):
    return Series(store, policy).publish(table, folder)


@pytest.fixture
def world(tmp_path):
    import pyarrow.csv as pc

    tables = people.generate(400, releases=3, seed=2)
    for number, table in enumerate(tables, 1):
        pc.write_csv(table, tmp_path / f"{number}.csv")
    pc.write_csv(people.updates(), tmp_path / "updates.csv")
    (tmp_path / "policy.yaml").write_text(POLICY.replace("MODEL", "m-distinct").replace("RISK", "0.5"))
    return tmp_path, tables


def test_a_series_on_the_command_line(world, capsys):
    folder, tables = world
    common = ["-p", f"{folder}/policy.yaml", "--store", f"{folder}/store.db", "--seed", "1", "--json"]
    for number, table in enumerate(tables, 1):
        with pytest.raises(SystemExit) as done:
            main(["republish", f"{folder}/{number}.csv", "-o", f"{folder}/out{number}", *common])
        assert done.value.code in (0, None)
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert told["input"] == table.num_rows == told["published"] + told["withheld"]
        assert told["metrics"]["max_risk"] <= 0.5
        assert {"counterfeits", "max_risk"} <= set(told["metrics"])
    outs = [f"{folder}/out{number}" for number in (1, 2, 3)]
    with pytest.raises(SystemExit) as done:
        main(["verify", *outs, "-p", f"{folder}/policy.yaml", "--ledger", f"{folder}/store.db", "--json"])
    assert done.value.code in (0, None)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["holds"]
    assert any("legal update instance" in finding["claim"] for finding in result["findings"])
    names = Release.from_dir(outs[0]).tables["data"].column_names
    assert names == ["group", "age", "sex", "region", "postcode", "diagnosis"]


def test_an_impossible_limit_publishes_nothing_and_leaves_no_store(world):
    folder, tables = world
    (folder / "policy.yaml").write_text(POLICY.replace("MODEL", "m-distinct").replace("RISK", "0.01"))
    policy = Policy.load(folder / "policy.yaml")
    with pytest.raises(GuaranteeError):
        republish(tables[0], policy, folder / "store.db", folder / "out")
    assert not (folder / "out").exists()
    assert not (folder / "store.db").exists()
    (folder / "policy.yaml").write_text(POLICY.replace("MODEL", "m-distinct").replace("RISK", "0.5"))
    republish(tables[0], Policy.load(folder / "policy.yaml"), folder / "store.db", folder / "out")


def test_a_crash_before_the_folder_is_written_delivers_the_same_release(world, monkeypatch):
    folder, tables = world
    policy = Policy.load(folder / "policy.yaml")
    store = folder / "store.db"
    made = []

    def crash(self, *_, **__):
        made.append(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Release, "to_dir", crash)
        with pytest.raises(KeyboardInterrupt):
            republish(tables[0], policy, store, folder / "out1")
    with pytest.raises(StateError, match="not written"):
        republish(tables[1], policy, store, folder / "out2")
    again = republish(tables[0], policy, store, folder / "out1")
    assert all(again.tables[name].equals(made[0].tables[name]) for name in again.tables)
    later = republish(tables[1], policy, store, folder / "out2")
    with Store.open(store, create=False) as kept:
        ledger = kept.ledger("series")
        assert len(ledger) == 2
    assert verify([folder / "out1", folder / "out2"], policy, ledger=ledger).holds
    assert later.explain["release"] == 2


def test_another_policy_is_refused(world):
    folder, tables = world
    policy = Policy.load(folder / "policy.yaml")
    republish(tables[0], policy, folder / "store.db", folder / "out1")
    (folder / "policy.yaml").write_text(POLICY.replace("MODEL", "m-distinct").replace("RISK", "0.4"))
    with pytest.raises(StateError):
        republish(tables[1], Policy.load(folder / "policy.yaml"), folder / "store.db", folder / "out2")


@pytest.mark.parametrize("model", ["m-distinct*", "m-invariance"])
def test_every_model_runs_with_a_store(world, model):
    folder, tables = world
    (folder / "policy.yaml").write_text(
        POLICY.replace("MODEL", model).replace("RISK", "0.5").replace("max_risk", "max_withheld: 0.9, max_risk")
    )
    policy = Policy.load(folder / "policy.yaml")
    for number, table in enumerate(tables, 1):
        republish(table, policy, folder / "store.db", folder / f"out{number}")
    with Store.open(folder / "store.db", create=False) as kept:
        ledger = kept.ledger("series")
    assert verify([folder / f"out{number}" for number in (1, 2, 3)], policy, ledger=ledger).holds


def test_l_diversity_holds_for_each_release_and_says_that_it_does_for_no_two(world, capsys):
    folder, tables = world
    text = (
        POLICY.replace("MODEL", "l-diversity")
        .replace(", max_risk: RISK", "")
        .replace("\nseries", "\nprivacy: {k: 5}\nseries")
    )
    (folder / "policy.yaml").write_text(text)
    for number in (1, 2):
        common = ["-p", f"{folder}/policy.yaml", "--store", f"{folder}/store.db", "-o", f"{folder}/out{number}"]
        with pytest.raises(SystemExit) as done:
            main(["republish", f"{folder}/{number}.csv", *common])
        assert done.value.code in (0, None)
    releases, policy = (
        [Release.from_dir(folder / f"out{number}") for number in (1, 2)],
        Policy.load(folder / "policy.yaml"),
    )
    for release, table in zip(releases, tables, strict=False):
        assert (release.kind, release.shape, release.method) == ("series", "generalized", "l-diversity")
        assert release.guarantee.claims == {"k": {"persons": 5}, "l": {"distinct": 4}}
        assert any("several releases" in words for words in release.guarantee.not_covered)
        classes: dict[tuple, list] = {}
        for row in release.tables["data"].to_pylist():
            classes.setdefault(tuple(row[name] for name in policy.quasi), []).append(row["diagnosis"])
        assert all(len(values) >= 5 and len(set(values)) >= 4 for values in classes.values())
        assert sum(map(len, classes.values())) == table.num_rows
    result = verify([folder / "out1", folder / "out2"], policy)
    assert result.holds
    assert any("several releases" in note for note in result.notes)


def test_the_verifier_of_a_series_takes_no_release_by_itself_where_the_policy_asks_for_more(world):
    folder, tables = world
    text = POLICY.replace("MODEL", "l-diversity").replace(", max_risk: RISK", "")
    (folder / "policy.yaml").write_text(text)
    republish(tables[0], Policy.load(folder / "policy.yaml"), folder / "store.db", folder / "out")
    for other in (text.replace("l-diversity", "m-distinct"), text.replace("m: 4", "m: 12")):
        (folder / "other.yaml").write_text(other)
        assert not verify(folder / "out", Policy.load(folder / "other.yaml")).holds


def test_a_bound_that_l_diversity_would_not_keep_is_refused(world):
    folder, tables = world
    (folder / "policy.yaml").write_text(POLICY.replace("MODEL", "l-diversity").replace("RISK", "0.5"))
    with pytest.raises(PolicyError, match="does not bound the risk over several releases"):
        republish(tables[0], Policy.load(folder / "policy.yaml"), folder / "store.db", folder / "out")
    assert not (folder / "out").exists()


def test_two_records_of_one_person_are_refused_without_naming_them(world):
    import pyarrow as pa

    folder, tables = world
    doubled = folder / "doubled.csv"
    import pyarrow.csv as pc

    pc.write_csv(pa.concat_tables([tables[0], tables[0].slice(0, 1)]), doubled)
    found = subprocess.run(
        [
            *(sys.executable, "-m", "reticent", "republish", str(doubled), "-p", str(folder / "policy.yaml")),
            *("--store", str(folder / "s.db"), "-o", str(folder / "out")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 3
    assert tables[0]["patient_id"][0].as_py() not in found.stderr
