"""The Python interface: names, paths and tables in, reprs that fit a screen."""

from __future__ import annotations

import json
import subprocess
import sys

import evolving_cases as cases
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import reticent
import reticent.audit  # the package has the name of the function


@pytest.fixture
def files(tmp_path):
    table = cases.table(range(70), [i % 7 for i in range(70)])
    pc.write_csv(table, tmp_path / "data.csv")
    rules = cases.policy("veil", 3).to_dict() | {"privacy": {"l": 3}}
    rules |= {"series": {"method": "m-invariance", "m": 3, "max_risk": 0.5}}
    (tmp_path / "policy.json").write_text(json.dumps(rules))
    return tmp_path, table


def test_every_public_name_is_there_and_listed():
    assert set(reticent.__all__) <= set(dir(reticent))
    assert reticent.__version__
    for name in reticent.__all__:
        assert getattr(reticent, name) is not None
    with pytest.raises(AttributeError):
        reticent.nobody  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, reticent; print([m for m in ('pyarrow', 'numpy', 'pydantic') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_table_released_without_a_store_loads_no_database():
    code = "import sys, reticent; reticent.anonymize; print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("as_path", [True, False])
def test_a_table_once(files, as_path):
    folder, table = files
    policy = folder / "policy.json" if as_path else reticent.Policy.load(folder / "policy.json")
    data = folder / "data.csv" if as_path else table
    release = reticent.anonymize(data, policy, method="anatomy", seed=1)
    assert release.records.published == 70
    assert reticent.verify(release, policy).holds
    assert not reticent.audit(release, policy, original=data, seed=1).refuted


def test_an_evolving_table(files):
    folder, table = files
    kept = reticent.EvolvingTable(folder / "store.db", folder / "policy.json")
    assert kept.insert(folder / "data.csv").inserted == 70
    first = kept.publish(folder / "one")
    kept.delete(["1", "2"])
    kept.delete(table.slice(3, 1).select(["id"]))
    again = reticent.EvolvingTable(folder / "store.db")
    assert again.update(table.slice(10, 1)).updated == 1
    assert again.apply(cases.table([99], [1]).append_column("op", [["insert"]])).inserted == 1
    second = again.publish()
    assert (first.records.published, second.records.published) == (70, 68)
    assert reticent.verify([first, second], folder / "policy.json", store=folder / "store.db").holds
    assert again.status()["publications"] == 2
    with pytest.raises(reticent.StateError, match="another policy"):
        reticent.EvolvingTable(folder / "store.db", cases.policy("veil", 2))


def test_a_series(files):
    folder, table = files
    series = reticent.Series(folder / "series.db", folder / "policy.json")
    releases = [series.publish(table), series.publish(folder / "data.csv", folder / "two", format="parquet")]
    assert [release.explain["release"] for release in releases] == [1, 2]
    assert (folder / "two" / "data.parquet").exists()
    assert reticent.verify(releases, folder / "policy.json", store=folder / "series.db").holds


def test_values_show_themselves_escaped_and_briefly(files):
    folder, table = files
    odd = {"version": 1, "columns": {"<i>": "quasi", "ill": "sensitive"}, "privacy": {"l": 2}}
    policy = reticent.Policy.from_dict(odd)
    data = pa.table({"<i>": ["<script>"] * 40, "ill": ["a", "b"] * 20})
    release = reticent.anonymize(data, policy, method="anatomy")
    result = reticent.verify(release, policy)
    for value in (policy, release, result):
        assert len(repr(value)) < 400
        assert "script" not in repr(value)
        assert value._repr_html_().startswith("<p><b>")
        assert "<i>" not in value._repr_html_()
        assert "<script>" not in value._repr_html_()
    assert release._repr_html_().count("&lt;script&gt;") == 5
    kept = reticent.EvolvingTable(folder / "store.db", folder / "policy.json")
    kept.insert(table)
    assert "z1" not in repr(kept)


def test_a_stream_runs_between_named_ends(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from reticent.cli import app

    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["datasets", "feed", "-n", "200", "--seed", "1", "-o", "feed.csv"])
    with reticent.Stream("feed.policy.yaml", store="feed.db") as stream:
        done = stream.run("feed.csv", "released.ndjson")
    assert done.records.published == 200
    assert reticent.verify("released.ndjson", "feed.policy.yaml").holds


def test_mistakes_in_a_notebook_are_answered_in_words(files):
    folder, table = files
    policy = reticent.Policy.load(folder / "policy.json")
    release = reticent.anonymize(table, policy, method="anatomy", seed=1)
    with pytest.raises(reticent.PolicyError, match=r"no table 'data'. Use one of: qit, st"):
        release.to_pandas("data")
    with pytest.raises(reticent.PolicyError, match=r"release\.to_dir"):
        reticent.read(release)
    with pytest.raises(reticent.PolicyError, match="no release to verify"):
        reticent.verify([], policy)
    quasi = policy.quasi[0]
    assert reticent.risk(table, quasi=quasi).quasi == (quasi,)
    changed = policy.replace(columns={quasi: "plain"}, privacy={"l": 3, "k": 2})
    assert (changed.quasi, changed.privacy.k) == (policy.quasi[1:], 2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table, policy: reticent.anonymize(table, policy, method=3),
        lambda table, policy: reticent.EvolvingTable(None, policy),
        lambda table, policy: reticent.EvolvingTable(5),
        lambda table, policy: reticent.Series(None, policy).publish(table),
        lambda table, policy: reticent.Policy.load(None),
        lambda table, policy: reticent.Policy.load(7),
    ],
)
def test_a_wrong_argument_is_an_error_of_ours_with_a_hint(files, wrong):
    folder, table = files
    with pytest.raises(reticent.ReticentError) as caught:
        wrong(table, folder / "policy.json")
    assert caught.value.hint or "write one of" in str(caught.value)
