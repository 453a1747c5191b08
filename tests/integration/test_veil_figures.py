"""What was measured of a prior travels with it: report, bundle, veil.json and the words of every release."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import csv as pacsv

from reticent.cli import app
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.publication import table
from reticent.release import Release
from reticent.verify import verify

ILLS = np.array([f"{chapter}{number}" for chapter in "ABC" for number in range(4)])
TREE = {chapter: [ill for ill in ILLS if ill[0] == chapter] for chapter in "ABC"}
POLICY = f"""\
version: 1
person: {{column: id, events: visit}}
columns:
  id: identifier
  visit: identifier
  sex: quasi
  ill: {{role: sensitive, hierarchy: {{tree: {json.dumps(TREE)}}}}}
privacy: {{l: 3}}
prior: {{file: prior.csv, kernel: {{file: kernel.csv}}}}
table: {{method: veil}}
"""


def visits(seed, persons, events=5):
    """Half stay; of the changes half go to a sibling, the rest anywhere."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], persons)
    now = rng.integers(12, size=persons)
    columns = {"id": [], "visit": [], "sex": [], "ill": []}
    for event in range(events):
        columns["id"] += [f"{seed}-{i}" for i in range(persons)]
        columns["visit"] += [event] * persons
        columns["sex"] += sex.tolist()
        columns["ill"] += ILLS[now].tolist()
        change = rng.random(persons) < 0.5
        near = rng.random(persons) < 0.5
        to = np.where(near, now // 4 * 4 + rng.integers(4, size=persons), rng.integers(12, size=persons))
        now = np.where(change, to, now)
    return pa.table(columns)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    (folder / "policy.yaml").write_text(POLICY)
    pacsv.write_csv(visits(1, 4000), folder / "past.csv")
    words = ["prior", folder / "past.csv", "-p", folder / "policy.yaml", "-o", folder / "prior.csv", "--seed", 3]
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def place(made, tmp_path):
    for name in ("policy.yaml", "prior.csv", "kernel.csv", "prior.report.json"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return tmp_path


def figures(place):
    return json.loads((place / "prior.report.json").read_text())


def published(place):
    policy = Policy.load(place / "policy.yaml")
    return table.publish(visits(2, 300), policy, seed=1).release, policy


def test_the_report_says_what_was_measured(place):
    report = figures(place)
    assert report["epsilon"] == 1
    assert report["held_out"] == 800
    assert 0.3 < report["attacker"]["after"]["right"] < 0.4
    assert report["odds_ratio"]["mean"] <= report["odds_ratio"]["99"]
    kernel = report["kernel"]
    assert [one["events"] for one in kernel["attackers"]] == [2, 4]
    assert all(abs(one["right"] - one["published"]) < 0.08 for one in kernel["attackers"])
    assert kernel["misfit"]["gain"] < 0.05
    assert "max" not in json.dumps(report)


def test_every_release_quotes_it_and_the_verifier_compares(place):
    release, policy = published(place)
    quoted = release.metadata["veil"]["figures"]
    assert quoted == {word: part for word, part in figures(place).items() if word != "sha256"}
    words = " ".join(release.guarantee.not_covered)
    assert f"{quoted['attacker']['after']['right']:.1%} of the cases" in words
    assert "after 4 events" in words
    assert "epsilon = 1" in words
    release.to_dir(place / "out")
    document = json.loads((place / "out" / "veil.json").read_text())
    document["figures"]["omission_rate"] = 0.0001
    forged = Release.from_dir(place / "out")
    object.__setattr__(forged, "metadata", {"veil": document})
    assert "the figures match the prior's report" in [one.claim for one in verify(forged, policy).refuted]


def test_without_a_report_the_release_says_that_nobody_measured_it(place):
    (place / "prior.report.json").unlink()
    release, policy = published(place)
    words = " ".join(release.guarantee.not_covered)
    assert words.count("not measured") == 2
    assert release.metadata["veil"]["figures"] is None
    assert verify(release, policy).holds


def test_the_report_is_no_part_of_what_a_key_pins(place):
    release, _ = published(place)
    (place / "prior.report.json").unlink()
    again, _ = published(place)
    assert release.metadata["veil"]["parameters_digest"] == again.metadata["veil"]["parameters_digest"]
    assert (
        release.tables["data"].drop_columns("visit" if "visit" in release.tables["data"].column_names else [])
        == (again.tables["data"])
    )


def test_a_report_of_another_prior_is_refused(place):
    with (place / "prior.csv").open("a") as file:
        file.write("A0,1\n")
    with pytest.raises(PolicyError, match="does not belong to"):
        published(place)


def test_figures_of_another_kernel_are_not_quoted(place):
    lines = (place / "kernel.csv").read_text().splitlines()
    (place / "kernel.csv").write_text("\n".join([*lines[:-1], "C3,0.9," + lines[-1].split(",")[2]]) + "\n")
    release, _ = published(place)
    assert release.metadata["veil"]["figures"]["kernel"] is None
    assert "misfit of the kernel was not measured" in " ".join(release.guarantee.not_covered)


def test_epsilon_may_only_confirm_the_report(place):
    for epsilon, sound in ((1, True), (0.5, False)):
        text = POLICY.replace("prior: {file: prior.csv,", f"prior: {{file: prior.csv, epsilon: {epsilon},")
        (place / "policy.yaml").write_text(text)
        if sound:
            published(place)
        else:
            with pytest.raises(PolicyError, match=r"prior\.epsilon"):
                published(place)


def test_the_report_belongs_to_the_policys_files(place, tmp_path):
    policy = Policy.load(place / "policy.yaml")
    carried = Bundle.from_bytes(Bundle.pack(policy).to_bytes()).unpack(tmp_path / "elsewhere")
    assert carried.hash == policy.hash
    (place / "prior.report.json").unlink()
    assert Policy.load(place / "policy.yaml").hash != policy.hash


def test_a_person_is_offered_over_all_events_and_the_verifier_agrees(place):
    release, policy = published(place)
    assert verify(release, policy).holds
    data = release.tables["data"]
    assert set(data.column("event").to_pylist()) == set(range(5))
    assert max(release.metadata["veil"]["omission_rate"]) < 0.1
