"""Noisy counts with a veiled table: requested by the policy, verified, charged, used by `ask`, and published once."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.integration.test_veil import POLICY, people, write

import reticent
from reticent.cli import app
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.publication import table as tables
from reticent.release import Release
from reticent.verify import verify
from reticent.verify.original.persons import Input

TOTALS = POLICY.replace("prior: {file: prior.csv}", "prior: {file: prior.csv, counts: 1.0}")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("counts")
    (place / "policy.yaml").write_text(TOTALS)
    (place / "without.yaml").write_text(POLICY)
    write(place / "past.csv", people(1, 3000))
    write(place / "now.csv", people(2, 2000))
    write(place / "more.csv", people(5, 300))
    assert run("prior", place / "past.csv", "-p", place / "policy.yaml", "-o", place / "prior.csv").exit_code == 0
    assert release(place, "a").exit_code == 0
    return place


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def release(place, name, data="now.csv", policy="policy.yaml"):
    words = ("anonymize", place / data, "-p", place / policy, "-o", place / name, "--store", place / "veil.db")
    return run(*words)


def test_the_release_carries_them_says_what_they_cost_and_is_verified(place):
    document = json.loads((place / "a" / "veil.json").read_bytes())
    assert document["counts"]["epsilon"] == 1.0
    counts = np.array(document["counts"]["counts"])
    assert counts.shape == np.array(document["segments"]).shape
    assert abs(counts.sum() - 2000) < 200
    words = " ".join(Release.from_dir(place / "a").guarantee.not_covered)
    assert "counts by stratum and value were computed from the released persons, with noise of epsilon = 1" in words
    done = run("verify", place / "a", "-p", place / "policy.yaml", "--original", place / "now.csv", "--all")
    assert done.exit_code == 0, done.output
    assert "noisy counts have as much noise as stated" in done.output


def test_a_persons_epsilon_is_spent_once(place):
    assert release(place, "again").exit_code == 0  # the very same release: no further noise
    same = [json.loads((place / name / "veil.json").read_bytes())["counts"] for name in ("a", "again")]
    assert same[0] == same[1]
    write(place / "fewer.csv", people(2, 2000).slice(0, 1000))
    for policy in ("policy.yaml", "without.yaml"):
        done = release(place, "b", data="fewer.csv", policy=policy)
        assert isinstance(done.exception, GuaranteeError), policy
    assert release(place, "c", data="more.csv").exit_code == 0


@pytest.mark.parametrize("kind", ["series", "evolving", "stream"])
def test_kinds_that_publish_again_have_none(place, kind):
    from reticent.engine.veil.parameters import VeilParameters

    with pytest.raises(PolicyError, match="cost epsilon again"):
        VeilParameters.of(Policy.load(place / "policy.yaml"), kind)


def test_relatives_are_not_counted_as_strangers(place):
    policy = Policy.load(place / "policy.yaml").to_dict()
    policy["prior"]["household"] = "id"
    from reticent.engine.veil.parameters import VeilParameters

    with pytest.raises(PolicyError, match="noisy counts and a household"):
        VeilParameters.of(Policy.from_dict(policy, base=place), "table")


@pytest.mark.parametrize(
    ("change", "original"),
    [
        (lambda totals, _: totals.update(epsilon=3.0), False),
        (lambda totals, _: totals["counts"][0].__setitem__(0, 5000), False),
        (lambda totals, _: totals.update(truth=1), False),
        (lambda totals, exact: totals.update(counts=exact), True),
        (lambda totals, _: totals.update(counts=np.roll(totals["counts"], 1, axis=1).tolist()), True),
    ],
    ids=["dearer than the policy", "not of these records", "another key", "without noise", "of other values"],
)
def test_others_are_refuted(place, tmp_path, change, original):
    policy, data = Policy.load(place / "policy.yaml"), people(2, 2000)
    passed = tables.publish(data, policy, seed=7)
    document = dict(passed.release.metadata["veil"])
    exact = np.zeros(np.array(document["segments"]).shape, dtype=int)
    rows = dict(zip(_keys(passed.release, data), passed.release.tables["data"]["stratum"].to_pylist(), strict=True))
    for person, value in zip(data["id"].to_pylist(), data["ill"].to_pylist(), strict=True):
        exact[rows[person], document["domain"].index(value)] += 1
    document["counts"] = json.loads(json.dumps(document["counts"]))
    assert _verify(passed.release, document, policy, data).holds
    change(document["counts"], exact.tolist())
    assert not _verify(passed.release, document, policy, data if original else None).holds


def _keys(release, data):
    """Persons in the order of the release: rows of the prior follow from sex and age band."""
    table, keys = release.tables["data"], {}
    for person, sex, age in zip(data["id"].to_pylist(), data["sex"].to_pylist(), data["age"].to_pylist(), strict=True):
        keys.setdefault((sex, f"[{age // 10 * 10}, {age // 10 * 10 + 10})"), []).append(person)
    return [keys[cells].pop() for cells in zip(table["sex"].to_pylist(), table["age"].to_pylist(), strict=True)]


def _verify(release, document, policy, data):
    from dataclasses import replace

    changed = replace(release, metadata={**release.metadata, "veil": document})
    return verify(changed, policy, original=Input(data)) if data is not None else verify(changed, policy)


def test_counts_give_narrower_intervals_that_hold(place):
    original = people(2, 2000)
    received, blind = reticent.read(place / "a"), _without_totals(place)
    hits, narrower = [], []
    for value in received.values:
        for sex in ("m", "f"):
            answer, before = (each.count(value, [f"sex={sex}"]) for each in (received, blind))
            exact = sum(
                v == value and s == sex
                for v, s in zip(original["ill"].to_pylist(), original["sex"].to_pylist(), strict=True)
            )
            hits.append(answer.low <= exact <= answer.high)
            narrower.append((answer.high - answer.low) / (before.high - before.low))
    assert np.mean(hits) > 0.7  # 14 intervals of 95 %
    assert np.median(narrower) < 0.8


def _without_totals(place):
    folder = place / "blind"
    if not folder.exists():
        found = Release.from_dir(place / "a")
        veil = {word: part for word, part in found.metadata["veil"].items() if word != "counts"}
        from dataclasses import replace

        replace(found, metadata={**found.metadata, "veil": veil}).to_dir(folder)
    return reticent.read(folder)


def test_a_person_with_two_records_of_one_event_is_refused(place):
    policy = Policy.load(place / "policy.yaml").to_dict()
    policy["person"] = {"column": "id", "events": "age"}
    data = people(2, 500)
    with pytest.raises(PolicyError, match="several records of their first event"):
        tables.publish(pa.concat_tables([data, data.slice(0, 1)]), Policy.from_dict(policy, base=place), seed=1)
