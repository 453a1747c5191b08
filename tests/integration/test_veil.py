"""The veil through the command line: a prior from the past, a parameter set in a store, a release that the verifier rebuilds."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from reticent.cli import app
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.publication import series, table
from reticent.release import Release
from reticent.store import Store
from reticent.verify import verify

ILLS = ["asthma", "croup", "flu", "gout", "hiv", "mumps", "ulcer"]
POLICY = """\
version: 1
person: id
columns:
  id: identifier
  sex: quasi
  age: {role: quasi, level: 1, hierarchy: {intervals: [10, 40]}}
  ill: sensitive
privacy: {l: 3}
prior: {file: prior.csv}
table: {method: veil}
series: {method: veil}
"""


def people(seed, n):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["m", "f"], n)
    shares = {"m": [3, 1, 4, 4, 1, 2, 3], "f": [3, 4, 4, 1, 1, 2, 1]}
    ill = [rng.choice(ILLS, p=np.array(shares[s]) / sum(shares[s])) for s in sex]
    return pa.table({"id": [f"p{seed}-{i}" for i in range(n)], "sex": sex, "age": rng.integers(0, 90, n), "ill": ill})


def write(path, rows):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(rows.column_names)
        out.writerows(zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True))


@pytest.fixture
def place(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    write(tmp_path / "past.csv", people(1, 3000))
    write(tmp_path / "now.csv", people(2, 800))
    done = run(
        "prior", tmp_path / "past.csv", "-p", tmp_path / "policy.yaml", "-o", tmp_path / "prior.csv", "--seed", 3
    )
    assert done.exit_code == 0, done.output
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def release(place, name, policy="policy.yaml", store="veil.db"):
    return run("anonymize", place / "now.csv", "-p", place / policy, "-o", place / name, "--store", place / store)


def candidates(folder):
    data = Release.from_dir(folder).tables["data"]
    return sorted(map(tuple, zip(*(data.column(name).to_pylist() for name in data.column_names), strict=True)))


def test_one_parameter_set_shows_a_person_the_same_candidates_again(place):
    assert release(place, "a").exit_code == 0
    assert release(place, "b").exit_code == 0
    assert candidates(place / "a") == candidates(place / "b")
    assert release(place, "c", store="other.db").exit_code == 0
    assert candidates(place / "a") != candidates(place / "c")
    assert run("verify", place / "a", "-p", place / "policy.yaml").exit_code == 0
    names = ["README.txt", "codebook.json", "data.csv", "release.json", "veil.json"]
    assert sorted(path.name for path in (place / "a").iterdir()) == names


def test_without_a_store_or_under_another_l_nothing_is_published(place):
    done = run("anonymize", place / "now.csv", "-p", place / "policy.yaml", "-o", place / "x")
    assert isinstance(done.exception, PolicyError)
    assert "--store" in str(done.exception)
    assert release(place, "a").exit_code == 0
    (place / "stricter.yaml").write_text(POLICY.replace("l: 3", "l: 4"))
    done = release(place, "y", policy="stricter.yaml")
    assert isinstance(done.exception, PolicyError)
    assert not (place / "x").exists()
    assert not (place / "y").exists()


def test_a_policy_without_a_prior_is_refused_with_the_ways_out(place):
    (place / "blind.yaml").write_text(POLICY.replace("prior: {file: prior.csv}\n", ""))
    done = release(place, "x", policy="blind.yaml")
    assert isinstance(done.exception, PolicyError)
    assert "reticent prior" in str(done.exception)


@pytest.mark.parametrize("by", ["", "age,"])
def test_a_prior_of_more_values_or_rows_than_a_veil_counts_is_refused_in_words(place, by):
    cells = (f"{n}," if by else "" for n in range(65_536))
    lines = (f"{cell}{'gout' if by else f'v{n}'},1\n" for n, cell in enumerate(cells))
    (place / "prior.csv").write_text(f"{by}value,count\n" + "".join(lines))
    (place / "prior.report.json").unlink()
    (place / "policy.yaml").write_text(POLICY.replace(", level: 1", ""))
    done = release(place, "out")
    assert isinstance(done.exception, PolicyError)
    assert "65,536" in str(done.exception)
    assert "at most 65,535 of each" in str(done.exception)
    assert not (place / "out").exists()


def changed(path, change):
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda veil: veil.update(truth=["flu"]),
        lambda veil: veil["segments"][0].reverse(),
        lambda veil: veil.update(l=2),
        lambda veil: veil["permutations"][0].__setitem__(0, veil["permutations"][0][1]),
        lambda veil: veil.pop("domain"),
    ],
    ids=["another key", "another prior", "another l", "no order", "no domain"],
)
def test_a_veil_that_is_not_the_policys_is_refuted(place, change):
    assert release(place, "a").exit_code == 0
    changed(place / "a" / "veil.json", change)
    changed(place / "a" / "release.json", lambda manifest: manifest["files"].pop("veil.json"))
    assert not verify(place / "a", Policy.load(place / "policy.yaml")).holds


def test_a_set_that_the_line_cannot_give_is_refuted(place):
    assert release(place, "a").exit_code == 0
    made = Release.from_dir(place / "a")
    data = made.tables["data"]
    names = [f"ill_{slot}" for slot in (1, 2, 3)]
    cells = {name: data.column(name).to_pylist() for name in names}
    for name in names:
        cells[name][0] = "hiv"  # too rare to stand three times
    forged = data
    for name in names:
        forged = forged.set_column(forged.column_names.index(name), name, pa.array(cells[name]))
    object.__setattr__(made, "tables", {"data": forged})
    refuted = [finding.claim for finding in verify(made, Policy.load(place / "policy.yaml")).refuted]
    assert refuted == ["the set of every first event is possible in its stratum"]


def test_each_candidate_is_the_true_value_as_often_as_it_says(tmp_path):
    """Over many keys, on what is published: a candidate of c copies is the true value with probability c / l."""
    counts = np.array([30, 2, 11, 17, 5, 1, 20])
    lines = "".join(f"{ill},{n}\n" for ill, n in zip(ILLS, counts, strict=True))
    (tmp_path / "prior.csv").write_text("value,count\n" + lines)
    text = POLICY.replace("  ill: sensitive\n", "  ill: sensitive\n  line: plain\n")
    (tmp_path / "policy.yaml").write_text(text)
    policy, rng, n = Policy.load(tmp_path / "policy.yaml"), np.random.default_rng(5), 500
    hits, tries = np.zeros(4), np.zeros(4)
    for seed in range(40):
        true_values = rng.choice(ILLS, n, p=counts / counts.sum())
        rows = people(seed, n).set_column(3, "ill", pa.array(true_values)).append_column("line", pa.array(range(n)))
        data = table.publish(rows, policy, seed=seed).release.tables["data"]
        sets = zip(*(data.column(f"ill_{slot}").to_pylist() for slot in (1, 2, 3)), strict=True)
        for line, cells in zip(data.column("line").to_pylist(), sets, strict=True):
            for value in set(cells):
                tries[cells.count(value)] += 1
                hits[cells.count(value)] += value == true_values[line]
    for copies in (1, 2):
        share, error = hits[copies] / tries[copies], np.sqrt(copies / 3 * (1 - copies / 3) / tries[copies])
        assert abs(share - copies / 3) < 4 * error, (copies, share)


def test_a_table_and_a_series_of_one_parameter_set_agree(place):
    policy, rows = Policy.load(place / "policy.yaml"), people(9, 300)
    with Store.open(place / "veil.db") as store:
        once = table.publish(rows, policy, store=store).release
        store.register("series", policy_hash=policy.hash)
        with store.lock("series"):
            driver = series.Series(store, policy)
            first = driver.publish(rows).release
            second = driver.publish(rows.slice(0, 200)).release

    def sets(release):
        data = release.tables["data"]
        data = data.drop_columns([name for name in ("event", "person") if name in data.column_names])
        return sorted(map(tuple, zip(*(data.column(name).to_pylist() for name in data.column_names), strict=True)))

    assert sets(once) == sets(first)
    assert set(sets(second)) <= set(sets(first))  # without a kernel nothing moves
    assert set(second.tables["data"].column("event").to_pylist()) == {1}


@pytest.mark.parametrize("link", [None, True, False])
def test_persons_have_pseudonyms_where_the_policy_links_them(place, link):
    text = POLICY if link is None else POLICY.replace("prior.csv}", f"prior.csv, link: {str(link).lower()}}}")
    (place / "policy.yaml").write_text(text)
    policy, rows = Policy.load(place / "policy.yaml"), people(9, 300)
    with Store.open(place / "veil.db") as store:
        once = table.publish(rows, policy, store=store).release.tables["data"]
        store.register("series", policy_hash=policy.hash)
        with store.lock("series"):
            driver = series.Series(store, policy)
            first, second = (driver.publish(part).release.tables["data"] for part in (rows, rows.slice(100, 50)))
    assert ("person" in once.column_names) is (link is True)
    assert ("person" in first.column_names) is (link is not False)
    if link is not False:
        names = [set(data.column("person").to_pylist()) for data in (first, second)]
        assert len(names[0]) == 300
        assert names[1] < names[0]
        assert not names[0] & set(rows.column("id").to_pylist())
        assert link is None or not names[0] & set(once.column("person").to_pylist())


def test_a_link_that_the_policy_does_not_name_is_refuted(place):
    (place / "linked.yaml").write_text(POLICY.replace("prior.csv}", "prior.csv, link: true}"))
    assert release(place, "a", policy="linked.yaml").exit_code == 0
    assert verify(place / "a", Policy.load(place / "linked.yaml")).holds
    refuted = [finding.claim for finding in verify(place / "a", Policy.load(place / "policy.yaml")).refuted]
    assert "records have pseudonyms if and only if the policy links persons" in refuted
