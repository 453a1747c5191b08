"""`reticent ask` on every shape, through the command line; and that its intervals contain the true count."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from click.testing import CliRunner

import reticent
from reticent.cli import app, main
from reticent.policy import Policy

ILLS = [
    "asthma",
    "cancer",
    "croup",
    "diabetes",
    "flu",
    "gout",
    "hernia",
    "mumps",
    "sepsis",
    "stroke",
    "ulcer",
    "zoster",
]
POLICY = """\
version: 1
person: id
columns:
  id: identifier
  sex: quasi
  age: {role: quasi, LEVEL hierarchy: {intervals: [5, 10, 20, 40]}}
  ill: sensitive
privacy: {l: 3}
prior: {file: prior.csv}
table: {method: veil}
series: {method: m-invariance, m: 3, max_risk: 0.5}
stream: {method: delay-free}
"""


def people(seed, n):
    """Diabetes grows with age, flu falls with it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    odds = np.ones((n, len(ILLS)))
    odds[:, 3] = 0.2 + age / 30
    odds[:, 4] = 3 - age / 35
    odds /= odds.sum(axis=1, keepdims=True)
    ill = (rng.random(n)[:, None] > odds.cumsum(axis=1)).sum(axis=1)
    sex = rng.choice(["f", "m"], n)
    return pa.table({"id": [f"p{seed}-{i}" for i in range(n)], "sex": sex, "age": age, "ill": np.array(ILLS)[ill]})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ask")
    (folder / "policy.yaml").write_text(POLICY.replace("LEVEL ", ""))
    (folder / "level.yaml").write_text(POLICY.replace("LEVEL", "level: 2,"))
    (folder / "k.yaml").write_text(POLICY.replace("LEVEL ", "").replace("l: 3", "k: 5, suppression: 0.05"))
    pc.write_csv(people(1, 6000), folder / "past.csv")
    pc.write_csv(people(2, 3000), folder / "now.csv")
    run("prior", folder / "past.csv", "-p", folder / "policy.yaml", "-o", folder / "prior.csv", "--seed", 3)
    now = folder / "now.csv"
    store = ["--store", folder / "veil.db"]
    run("anonymize", now, "-p", folder / "policy.yaml", "-o", folder / "veil", *store, "--seed", 1)
    run(
        "anonymize",
        now,
        "-p",
        folder / "level.yaml",
        "-o",
        folder / "level",
        "--store",
        folder / "level.db",
        "--seed",
        1,
    )
    run("anonymize", now, "-p", folder / "policy.yaml", "-o", folder / "anatomy", "--method", "anatomy", "--seed", 1)
    run("anonymize", now, "-p", folder / "k.yaml", "-o", folder / "local", "--method", "local", "--seed", 1)
    run(
        "republish",
        now,
        "-p",
        folder / "policy.yaml",
        "--store",
        folder / "series.db",
        "-o",
        folder / "series",
        "--seed",
        1,
    )
    run(
        "stream",
        now,
        "-p",
        folder / "policy.yaml",
        "--store",
        folder / "s.db",
        "--to",
        folder / "feed.ndjson",
        "--seed",
        1,
    )
    run("export", folder / "anatomy", f"sqlite:///{folder / 'base.db'}")
    return folder


def run(*words):
    outcome = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome


def answers(*words):
    return json.loads(run("ask", *words, "--json").stdout.splitlines()[-1])["answers"]


SHAPES = ["veil", "level", "anatomy", "local", "series", "feed.ndjson", "base"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_answers_and_the_answer_contains_the_true_count(place, shape):
    release = f"sqlite:///{place / 'base.db'}" if shape == "base" else place / shape
    rows = answers(release, "--value", "diabetes,stroke", "--where", "age>=60", "--by", "sex", "--interval", ".99")
    table = people(2, 3000)
    sex, age, ill = (np.array(table[name].to_pylist()) for name in ("sex", "age", "ill"))
    mine = np.isin(ill, ["diabetes", "stroke"]) & (age >= 60)
    for row in rows if len(rows) > 1 else []:  # a series may publish no sex at all
        exact = int((mine & (sex == row["sex"])).sum())
        assert row["low"] <= exact <= row["high"], (shape, row, exact)
        assert set(row) == {"sex", "estimate", "low", "high"}
    (whole,) = answers(release, "--value", "diabetes,stroke", "--where", "age>=60", "--interval", ".99")
    assert whole["low"] <= mine.sum() <= whole["high"], (shape, whole, int(mine.sum()))


def test_columns_are_named_in_one_word_or_several(place):
    whole = answers(place / "veil", "--value", "flu", "--by", "sex,age", "--where", "age<3")
    assert whole == answers(place / "veil", "--value", "flu", "--by", "sex", "--by", "age", "--where", "age<3")
    assert len(whole) == 6


def test_a_value_of_another_sensitive_column_is_told(tmp_path):
    table = people(5, 300)
    pc.write_csv(table.append_column("drug", [["A", "B", "C"] * 100]), tmp_path / "two.csv")
    two = POLICY.replace("LEVEL ", "").replace("sensitive", "sensitive\n  drug: sensitive").replace("veil", "auto")
    (tmp_path / "p.yaml").write_text(two.replace("prior: {file: prior.csv}\n", ""))
    run("anonymize", tmp_path / "two.csv", "-p", tmp_path / "p.yaml", "-o", tmp_path / "two")
    outcome = CliRunner().invoke(app, ["ask", str(tmp_path / "two"), "--value", "B"])
    assert "--sensitive drug" in str(outcome.exception)
    assert answers(tmp_path / "two", "--value", "B", "--sensitive", "drug")[0]["high"] >= 100


def test_a_later_release_of_a_series_is_asked_with_the_earlier_ones(tmp_path):
    """Alone it knows the first sets of newcomers only: it answered for them as if for everybody."""
    rng, table = np.random.default_rng(4), people(6, 2500)
    later = np.where(rng.random(2500) < 0.15, rng.choice(ILLS, 2500), table["ill"].to_pylist())
    tables = [table, table.set_column(3, "ill", pa.array(later))]
    for number, part in enumerate(tables, 1):
        pc.write_csv(part, tmp_path / f"q{number}.csv")
    pc.write_csv(pa.concat_tables(tables), tmp_path / "past.csv")
    text = POLICY.replace("LEVEL ", "").replace("{method: m-invariance, m: 3, max_risk: 0.5}", "{method: veil}")
    policy = tmp_path / "p.yaml"
    policy.write_text(text)
    run("prior", tmp_path / "past.csv", "-p", policy, "-o", tmp_path / "prior.csv", "--seed", 3)
    policy.write_text(text.replace("file: prior.csv", "file: prior.csv, kernel: {file: kernel.csv}"))
    for number in (1, 2):
        words = ["-p", policy, "--store", tmp_path / "s.db", "-o", tmp_path / f"r{number}", "--seed", 1]
        run("republish", tmp_path / f"q{number}.csv", *words)
    alone = run("ask", tmp_path / "r2", "--value", "flu")
    assert "2,500 later events are not counted" in alone.stdout
    assert "Read all releases together" in alone.stdout
    rows = answers(tmp_path / "r1", tmp_path / "r2", "--value", "flu", "--interval", ".999")
    assert [row["release"] for row in rows] == [1, 2]
    for row, part in zip(rows, tables, strict=True):
        assert row["low"] <= part["ill"].to_pylist().count("flu") <= row["high"]
    (last,) = answers(tmp_path / "r1", tmp_path / "r2", "--value", "flu", "--where", "release=2", "--interval", ".999")
    assert last["estimate"] == rows[1]["estimate"]


def test_people_read_a_small_table_and_a_picture(place, tmp_path):
    outcome = run("ask", place / "veil", "--value", "flu", "--by", "sex", "--plot", tmp_path / "flu.svg")
    head, first, *_ = outcome.stdout.splitlines()[1:]
    assert head.split() == ["sex", "estimate", "low", "high"]
    assert first.split()[0] == "f"
    assert (tmp_path / "flu.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--value", "diabtes"], 2),
        (["--value", "flu", "--where", "agee>=60"], 2),
        (["--value", "flu", "--where", "age"], 2),
        (["--value", "flu", "--by", "sx"], 2),
        (["--value", "flu", "--interval", "2"], 2),
    ],
)
def test_wrong_words_exit_with_two_and_the_nearest_name(place, words, code, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["ask", str(place / "veil"), *words])
    assert ended.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_what_is_no_release_is_bad_data(tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["ask", str(tmp_path / "nothing"), "--value", "flu"])
    assert ended.value.code == 3


# -- the example that misleads ---------------------------------------------------------------------------------------------


def hospital(rng, n):
    """Old people of one group have little diabetes, and stand in groups with others who have much."""
    old = rng.random(n) < 0.3
    white = rng.random(n) < 0.6
    share = np.where(old & white, 0.03, np.where(old, 0.22, 0.16))
    others = rng.choice(["asthma", "cancer", "flu", "gout", "hernia", "sepsis", "stroke", "ulcer"], n)
    ill = np.where(rng.random(n) < share, "diabetes", others)
    age, race = np.where(old, 65, 40), np.where(white, "caucasian", "other")
    return pa.table({"age": age, "race": race, "ill": ill})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_diabetics_group_shares_mislead_and_the_interval_holds(seed, tmp_path):
    table = hospital(np.random.default_rng(seed), 8000)
    rules = {"version": 1, "columns": {"age": "quasi", "race": "quasi", "ill": "sensitive"}, "privacy": {"l": 5}}
    reticent.anonymize(table, Policy.from_dict(rules), method="anatomy", seed=seed).to_dir(tmp_path / "a")
    received = reticent.read(tmp_path / "a")
    answer = received.count("diabetes", where=["age>=60", "race=caucasian"])
    old, race, ill = (np.array(table[name].to_pylist()) for name in ("age", "race", "ill"))
    region = (old >= 60) & (race == "caucasian")
    exact = int((region & (ill == "diabetes")).sum())
    release = reticent.Release.from_dir(tmp_path / "a")
    st = release.tables["st"].to_pydict()
    sizes, mine = {}, {}
    for group, value, count in zip(st["group"], st["value"], st["count"], strict=True):
        sizes[group] = sizes.get(group, 0) + count
        mine[group] = mine.get(group, 0) + count * (value == "diabetes")
    qit = release.tables["qit"].to_pydict()
    naive = sum(
        mine[group] / sizes[group]
        for group, age, who in zip(qit["group"], qit["age"], qit["race"], strict=True)
        if int(age) >= 60 and who == "caucasian"
    )
    assert naive > 2 * exact, "the example no longer misleads"
    assert answer.low <= exact <= answer.high
    assert answer.high < naive


# -- coverage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["veil", "anatomy"])
def test_intervals_hold_as_often_as_they_say(place, shape):
    """200 questions over several releases of other people; a band, since questions of one release go together."""
    rng = np.random.default_rng(7)
    holds = []
    for seed in range(5, 10):
        table = people(seed, 3000)
        name = "policy.yaml"
        folder = place / f"{shape}-{seed}"
        method = None if shape == "veil" else "anatomy"
        store = place / "veil.db" if shape == "veil" else None
        made = reticent.anonymize(
            table, place / name, method=method, store=store, seed=None if shape == "veil" else seed
        )
        made.to_dir(folder)
        received = reticent.read(folder)
        sex, age, ill = (np.array(table[column].to_pylist()) for column in ("sex", "age", "ill"))
        for _ in range(40):
            low, high = sorted(rng.integers(0, 90, 2).tolist())
            value, who = rng.choice(ILLS), rng.choice(["f", "m"])
            answer = received.count(str(value), where=[f"age in {low}..{high}", f"sex={who}"])
            exact = ((age >= low) & (age <= high) & (sex == who) & (ill == value)).sum()
            holds.append(answer.low <= exact <= answer.high)
    assert 0.90 <= np.mean(holds) <= 0.995


def test_a_release_without_a_sensitive_column_counts_records(tmp_path):
    sexes, ages = ["f", "m"] * 50, [str(20 + at % 40) for at in range(100)]
    rules = {
        "version": 1,
        "columns": {"sex": "quasi", "age": "quasi"},
        "privacy": {"k": 2},
        "table": {"method": "local"},
    }
    release = reticent.anonymize(pa.table({"sex": sexes, "age": ages}), reticent.Policy.from_dict(rules), seed=1)
    release.to_dir(tmp_path / "out")
    received = reticent.read(tmp_path / "out")
    assert set(received.columns) == {"sex", "age"}
    counts = {row["sex"]: row["estimate"] for row in received.count(by="sex").to_list()}
    assert counts == {"f": 50, "m": 50}
    assert received.count(where="age>=40").to_list()[0]["low"] <= 45
    assert set(received.to_arrow().column_names) == {"sex", "age"}
