"""What was received: every shape opened, asked and completed, through the front door."""

import hashlib
import json
import os
import shutil
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.connectors.sql.write import write_release
from reticent.errors import ConnectorError, DataError, PolicyError
from reticent.policy import Policy
from reticent.read.draws import pool
from reticent.read.estimate.channel import SLOT_LENGTH
from reticent.read.shape.labels import number_combinations

ILLS = ["asthma", "croup", "flu", "gout", "hiv", "mumps", "ulcer", "zoster"]
COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "sex": "quasi",
    "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
    "ill": "sensitive",
    "seen": "plain",
}


def people(n, seed=1):
    """Illnesses that go with sex: flu three times as frequent among women."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    odds = {"m": np.ones(8), "f": np.array([1, 1, 3, 1, 1, 1, 1, 1])}
    ill = [rng.choice(ILLS, p=odds[s] / odds[s].sum()) for s in sex]
    zips = [f"{code:03}" for code in rng.integers(0, 1000, n)]
    seen = [f"2025-01-{day:02}" for day in rng.integers(1, 29, n)]
    return pa.table({"age": rng.integers(0, 90, n), "sex": sex, "zip": zips, "ill": ill, "seen": seen})


def policy(**privacy):
    return Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": privacy})


@pytest.fixture(scope="module")
def table():
    return people(4000)


@pytest.fixture(scope="module")
def anatomy(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("read") / "anatomy"
    reticent.anonymize(table, policy(l=3), method="anatomy", seed=1).to_dir(folder)
    return folder


@pytest.fixture(scope="module")
def general(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("read") / "general"
    reticent.anonymize(table, policy(k=5, suppression=0.02), method="local", seed=1).to_dir(folder)
    return folder


def true_count(table, ill, *conditions):
    rows = zip(*(table[name].to_pylist() for name in ("age", "sex", "ill")), strict=True)
    return sum(value == ill and all(test(age, sex) for test in conditions) for age, sex, value in rows)


def test_anatomy_is_inverted_and_knows_its_column(table, anatomy):
    received = reticent.read(anatomy)
    assert received.sensitive == "ill"
    assert "4,000 records" in repr(received)
    answer = received.count("flu", where="age>=60", by="sex")
    assert answer.table.column_names == ["sex", "estimate", "low", "high"]
    for row in answer.to_list():
        expected = true_count(table, "flu", lambda age, sex, mine=row["sex"]: age >= 60 and sex == mine)
        assert row["low"] <= expected <= row["high"]
    everybody = received.count("flu")
    assert everybody.estimate == pytest.approx(true_count(table, "flu"))
    assert everybody.high - everybody.low < 4


def test_types_survive(anatomy, general, tmp_path):
    received = reticent.read(anatomy)
    schema = received.to_arrow().schema
    assert pa.types.is_integer(schema.field("age").type)
    assert pa.types.is_string(schema.field("zip").type), "a code is no number"
    assert pa.types.is_date(schema.field("seen").type)
    assert received.to_pandas()["age"].dtype.kind == "i"
    reticent.Release.from_dir(anatomy).to_dir(tmp_path / "again", format="parquet")
    assert pa.types.is_integer(pq.read_schema(tmp_path / "again" / "qit.parquet").field("age").type)
    assert pa.types.is_string(reticent.read(general).to_arrow().schema.field("age").type)


def test_generalised_bounds_hold_and_groups_meet_the_cells_that_may_be_theirs(table, general):
    received = reticent.read(general)
    for low in (13, 37, 60):
        answer = received.count("flu", where=f"age>={low}", by="sex")
        for row in answer.to_list():
            expected = true_count(table, "flu", lambda age, sex, a=low, mine=row["sex"]: age >= a and sex == mine)
            assert row["low"] <= expected <= row["high"]
            assert row["low"] <= row["estimate"] <= row["high"]
    assert any("worst-case" in note for note in answer.notes)
    share = received.share("flu", where="age>=60")
    assert 0 <= share.low <= share.estimate <= share.high <= 1


def test_a_parquet_file_and_a_database_say_the_same(anatomy, tmp_path):
    received = reticent.read(anatomy)
    asked = {"where": ["age in 20..49", "sex=f"], "by": "seen"}
    expected = received.count("flu", **asked).to_list()
    file = received.to_parquet(tmp_path / "one.parquet")
    assert reticent.read(file).count("flu", **asked).to_list() == expected
    url = f"sqlite:///{tmp_path / 'some.db'}"
    write_release(anatomy, url)
    assert [str(row["estimate"]) for row in reticent.read(url).count("flu", **asked).to_list()] == [
        str(row["estimate"]) for row in expected
    ]
    with sqlite3.connect(tmp_path / "some.db") as link:
        assert link.execute("SELECT typeof(age) FROM release_qit LIMIT 1").fetchone() == ("integer",)
    link.close()
    with pytest.raises(ConnectorError):
        reticent.read(f"sqlite:///{tmp_path / 'none.db'}")


def test_the_codebook_holds_roles_and_no_cells(anatomy, table):
    book = json.loads((anatomy / "codebook.json").read_bytes())
    roles = {(entry["table"], entry["name"]): entry["role"] for entry in book["columns"]}
    assert roles["qit", "age"] == "quasi"
    assert roles["st", "value"] == "sensitive"
    assert book["sensitive"] == "ill"
    page = (anatomy / "README.txt").read_text()
    assert "How to read it" in page
    assert "may not be concluded" in page
    # Codes are only published in the table: the codebook and the page contain none of them.
    assert not [code for code in set(table["zip"].to_pylist()) if f'"{code}"' in json.dumps(book)]


def test_wrong_words_are_answered_with_the_nearest_right_one(anatomy, tmp_path):
    received = reticent.read(anatomy)
    with pytest.raises(PolicyError, match="Did you mean 'asthma'"):
        received.count("astma")
    with pytest.raises(PolicyError, match="Did you mean 'sex'"):
        received.count("flu", by="sx")
    with pytest.raises(PolicyError, match="cannot be used in a condition"):
        received.count("flu", where="ill=flu")
    with pytest.raises(PolicyError):
        received.count("flu", interval=95)
    with pytest.raises(DataError):
        reticent.read(tmp_path / "nothing")


def test_tables_values_by_name_and_pictures(anatomy, tmp_path):
    received = reticent.read(anatomy)
    cross = received.table("sex", "ill")
    assert len(cross) == 2 * len(ILLS)
    total = sum(row["estimate"] for row in cross.to_list() if row["ill"] == "flu")
    assert total == pytest.approx(received.count("flu").estimate)
    assert received.count("a*").estimate == pytest.approx(received.count("asthma").estimate)
    assert "<table>" in cross._repr_html_()
    assert "<script" not in received.count("flu", by="sex").plot(tmp_path / "a.svg").read_text()
    series = received.series("flu", every="week")
    assert series.table.column_names == ["seen", "estimate", "low", "high", "change"]
    assert "polyline" in series.plot(tmp_path / "b.svg").read_text()


# -- streams ------------------------------------------------------------------------------------------------------------


def lines(items):
    return "".join(json.dumps(item) + "\n" for item in items)


def veil_stream(folder, simulate, segments_of, n=6000, jump=True):
    """A stream under the veil, written by hand: an outbreak of flu in its second half."""
    rng = np.random.default_rng(5)
    strata = rng.integers(2, size=n)
    shares = np.array([[1, 1, 2, 1, 1, 1, 2, 1], [2, 1, 1, 1, 1, 1, 1, 2]], dtype=float)
    shares /= shares.sum(axis=1, keepdims=True)
    segments = np.stack([segments_of(share, 3) for share in shares])
    permutations = np.stack([rng.permutation(8) for _ in range(16)])
    true_values = rng.integers(8, size=n)
    if jump:
        true_values[n // 2 :][rng.random(n - n // 2) < 0.3] = 2
    sets = simulate(rng, true_values, strata, segments, permutations)
    veil = {"l": 3, "slot_length": SLOT_LENGTH, "sensitive": "ill", "domain": ILLS, "segments": segments.tolist()}
    veil |= {
        "permutations": permutations.tolist(),
        "kernel": None,
        "omission_rate": [0.0, 0.0],
        "omission_rate_epsilon": None,
    }
    items = [
        {
            "type": "record",
            "seq": i,
            "quasi": {"sex": "fm"[strata[i]], "age": int(i % 90)},
            "plain": {},
            "stratum": int(strata[i]),
            "event": 0,
            "candidates": [ILLS[code] for code in sets[i]],
        }
        for i in range(n)
    ]
    (folder / "feed.ndjson").write_text(lines(items))
    (folder / "feed.ndjson.codebook.json").write_text(json.dumps({"columns": [], "method": "veil", "veil": veil}))
    return folder / "feed.ndjson", true_values, strata


def test_a_veiled_stream_shows_the_outbreak(tmp_path, simulate, segments_of):
    file, true_values, strata = veil_stream(tmp_path, simulate, segments_of)
    received = reticent.read(file)
    answer = received.count("flu", by="sex")
    for row in answer.to_list():
        count = int(((true_values == 2) & (strata == "fm".index(row["sex"]))).sum())
        assert row["low"] <= count <= row["high"]
    series = received.series("flu", every=500)
    changes = [row["from"] for row in series.to_list() if row["change"]]
    assert changes == ["3000"]
    calm, _, _ = veil_stream(tmp_path, simulate, segments_of, jump=False)
    assert not [row for row in reticent.read(calm).series("flu", every=500).to_list() if row["change"]]


def test_a_live_stream_is_followed_window_by_window(tmp_path, simulate, segments_of):
    from reticent.read.follow import follow

    file, _, _ = veil_stream(tmp_path, simulate, segments_of, n=1100)
    book = json.loads((tmp_path / "feed.ndjson.codebook.json").read_bytes())
    lazy = iter(file.read_text().splitlines())
    answers = follow(lazy, book, "flu", every=500)
    first = next(answers)
    assert sum(1 for _ in lazy) == 600, "one window is read, and no more"
    assert first.estimate == pytest.approx(reticent.read(file).series("flu", every=500).to_list()[0]["estimate"])
    whole = list(follow(file.read_text().splitlines(), book, "flu", every=500))
    assert len(whole) == 3
    with pytest.raises(PolicyError):
        next(follow([], {}, "flu"))


def test_smooth_estimates_are_labelled_and_keep_the_interval(tmp_path, simulate, segments_of):
    file, _, _ = veil_stream(tmp_path, simulate, segments_of)
    received = reticent.read(file)
    plain, smooth = received.count("gout"), received.count("gout", smooth=True)
    assert (plain.low, plain.high) == (smooth.low, smooth.high)
    assert any("biased" in note for note in smooth.notes)
    shares = received.shape.shares(np.eye(8)[3]).sum()
    assert abs(smooth.estimate - shares) <= abs(plain.estimate - shares)
    # The outbreak is plain to see, so that little is drawn.
    flu, drawn = received.count("flu"), received.count("flu", smooth=True)
    assert abs(drawn.estimate - flu.estimate) < (flu.high - flu.low) / 4


def test_later_events_without_a_first_set_are_not_counted_and_a_note_says_so(tmp_path, simulate, segments_of):
    file, _, _ = veil_stream(tmp_path, simulate, segments_of, n=300)
    items = [json.loads(line) for line in file.read_text().splitlines()]
    for item in items[200:]:
        item["event"] = 1
    file.write_text(lines(items))
    answer = reticent.read(file).count("flu")
    assert "100 later events are not counted" in answer.notes[0]
    assert "the other 200 records" in answer.notes[0]
    share = reticent.read(file).share("flu")
    assert (share.low, share.estimate, share.high) == pytest.approx(
        (answer.low / 200, answer.estimate / 200, answer.high / 200)
    ), "a share of the records that were counted"


def test_numbers_are_values_and_what_is_no_question_is_refused(general):
    received = reticent.read(general)
    with pytest.raises(PolicyError, match="no value '5'"):
        received.count(5)
    with pytest.raises(PolicyError, match="values is empty"):
        received.count([])
    with pytest.raises(PolicyError, match="cannot be parsed"):
        received.count("flu", where=5)
    with pytest.raises(PolicyError, match="no column '5'"):
        received.count("flu", by=5)
    with pytest.raises(PolicyError, match="between 0 and 1"):
        received.count("flu", interval="95")
    for joined in ("age>=60 and sex=f", "sex=f AND age>=60", "sex=f or age<3"):
        with pytest.raises(PolicyError, match="contains another condition"):
            received.count("flu", where=joined)


def test_an_answer_and_what_was_received_are_at_home_in_notebooks(general, tmp_path):
    received = reticent.read(general)
    assert received._repr_html_().count("<tr>") == 6
    answer = received.count("flu", by="sex")
    assert answer.to_polars().columns == ["sex", "estimate", "low", "high"]
    with pytest.raises(PolicyError, match="SVG"):
        answer.plot(tmp_path / "flu.png")
    assert not (tmp_path / "flu.png").exists()


def test_groups_of_a_stream_and_records_of_castle(tmp_path):
    groups = [
        {"type": "group", "group": f"g{i}", "candidates": [[ILLS[i % 8], 1], [ILLS[(i * 3 + 1) % 8], 1]]}
        for i in range(40)
    ]
    tuples = [
        {"type": "tuple", "group": f"g{i % 40}", "seq": i, "quasi": {"age": i % 90}, "plain": {}} for i in range(80)
    ]
    (tmp_path / "a.ndjson").write_text(lines(groups + tuples))
    assert reticent.read(tmp_path / "a.ndjson").count().estimate == pytest.approx(80)
    records = [
        {"type": "record", "seq": i, "quasi": {"age": "[0, 50]" if i % 2 else "[40, 90]"}, "sensitive": ILLS[i % 8]}
        for i in range(64)
    ]
    (tmp_path / "c.ndjson").write_text(lines(records))
    answer = reticent.read(tmp_path / "c.ndjson").count("flu", where="age<45")
    assert (answer.low, answer.high) == (0, 8)
    (tmp_path / "c.ndjson").write_text("{not json\n")
    with pytest.raises(DataError, match="Line 1"):
        reticent.read(tmp_path / "c.ndjson")


def test_a_value_that_the_sets_do_not_reveal_is_refused(tmp_path, simulate, segments_of):
    """l p = 1: every set contains the value exactly once, whatever the true value is."""
    file, _, _ = veil_stream(tmp_path, simulate, segments_of, n=50)
    book = json.loads((tmp_path / "feed.ndjson.codebook.json").read_bytes())
    lengths = segments_of(np.full(8, 2 / 21), 3)
    lengths[0] = SLOT_LENGTH
    lengths[7] = 3 * SLOT_LENGTH - lengths[:7].sum()
    book["veil"]["segments"] = [lengths.tolist()] * 2
    (tmp_path / "feed.ndjson.codebook.json").write_text(json.dumps(book))
    with pytest.raises(PolicyError, match="cannot be estimated"):
        reticent.read(file).count("asthma")


# -- completed data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["anatomy", "veil"])
def test_draws_carry_the_relation_and_its_uncertainty(kind, anatomy, table, tmp_path, simulate, segments_of):
    if kind == "anatomy":
        received, true_values = reticent.read(anatomy), np.array(table["ill"].to_pylist())
        sex = np.array(table["sex"].to_pylist())
    else:
        file, codes, strata = veil_stream(tmp_path, simulate, segments_of)
        received, true_values, sex = reticent.read(file), np.array(ILLS)[codes], np.array(["f", "m"])[strata]
    draws = received.draws(20, given="sex", seed=1)
    assert len(draws) == 20
    estimates, variances = zip(*(difference(draw) for draw in draws), strict=True)
    pooled = pool(estimates, variances)
    flu = true_values == "flu"
    original = flu[sex == "f"].mean() - flu[sex == "m"].mean()
    assert abs(pooled.estimate[0] - original) < 3 * pooled.error[0]
    assert pooled.error[0] > 1.2 * np.sqrt(variances[0][0]), "the draws differ, and the error says so"


def difference(draw):
    """Share of flu among women less that among men, with its variance."""
    flu, sex = (np.array(draw[name].to_pylist()) for name in ("ill", "sex"))
    parts = [(flu == "flu")[sex == s] for s in "fm"]
    return [parts[0].mean() - parts[1].mean()], [sum(p.var() / len(p) for p in parts)]


def test_rubins_rules():
    pooled = pool([[1.0, 5], [2, 5], [3, 5]], [[0.5, 1], [0.5, 1], [0.5, 1]])
    assert pooled.estimate.tolist() == [2, 5]
    assert pooled.error**2 == pytest.approx([0.5 + 4 / 3, 1])
    assert pooled.freedom[0] == pytest.approx(2 * (1 + 0.5 / (4 / 3)) ** 2)
    with pytest.raises(PolicyError):
        pool([[1.0]], [[1.0]])


def test_a_stream_that_is_still_being_written_is_read_as_far_as_it_goes(tmp_path, simulate, segments_of):
    file, _, _ = veil_stream(tmp_path, simulate, segments_of, n=300)
    whole = file.read_text()
    file.write_text(whole + whole.splitlines()[0][:40])
    assert reticent.read(file).records == 300
    file.write_text(whole[:40] + "\n" + whole)
    with pytest.raises(DataError, match="Line 1"):
        reticent.read(file)
    file.write_text(whole)
    file.with_name("feed.ndjson.codebook.json").unlink()
    with pytest.raises(DataError, match="codebook is missing"):
        reticent.read(file)


def test_a_condition_without_matches_gets_a_note_and_the_count_of_all_is_exact(tmp_path, simulate, segments_of):
    file, _, strata = veil_stream(tmp_path, simulate, segments_of, n=300)
    received = reticent.read(file)
    assert "Did you mean" not in "".join(received.count("flu", where="sex=f").notes)
    assert any(
        "No published record matches 'age>=300'" in note for note in received.count("flu", where="age>=300").notes
    )
    assert [(row["low"], row["high"]) for row in received.count(by="sex").to_list()] == [
        (number, number) for number in np.bincount(strata).tolist()
    ]
    with pytest.raises(ConnectorError, match="Cannot write"):
        received.count("flu", by="sex").plot(tmp_path / "nowhere" / "a.svg")
    with pytest.raises(DataError, match="SQLite and PostgreSQL"):
        reticent.read("mysql://host/name")


def test_combinations_of_many_columns_are_told_apart():
    # 256 cells in each of nine columns are more combinations than there are numbers of 64 bits.
    rows = [(f"v{row}",) * 9 for row in range(256)] + [("v1", *["v0"] * 8)]
    at, cells = number_combinations([pa.chunked_array([[row[column] for row in rows]]) for column in range(9)])
    assert [cells[number] for number in at] == rows


@pytest.mark.parametrize(
    "entry", [{"records": []}, {"records": {"withheld": "x"}}, {"files": []}, {"files": {}}], ids=str
)
def test_a_release_without_the_form_of_one_is_bad_data_and_no_bug(general, tmp_path, entry):
    folder = tmp_path / "release"
    shutil.copytree(general, folder)
    manifest = json.loads((folder / "release.json").read_text()) | entry
    (folder / "release.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="verify"):
        reticent.read(folder)


@pytest.mark.parametrize(
    "nodes",
    [
        {"[0, 40)": {"below": 7, "size": 2}},
        {"[0, 40)": {"size": 2}},
        {"[0, 40)": {"below": [["x"]], "size": 2}},
        {"[0, 40)": {"below": [], "size": "many"}},
        {"[0, 40)": []},
        ["x"],
    ],
)
def test_a_codebook_without_form_is_refused_in_words(general, tmp_path, nodes):
    folder = forged(general, tmp_path, lambda entry: entry.update(nodes=nodes))
    with pytest.raises(DataError, match="form"):
        reticent.read(folder).count("flu", where="age<45")


def test_a_node_below_itself_has_no_end_and_is_not_followed(general, tmp_path):
    nodes = {"[0, 40)": {"below": ["young"], "size": 2}, "young": {"below": ["young"], "size": 1}}
    data = (general / "data.csv").read_text().replace("[0, 40)", "young")
    folder = forged(general, tmp_path, lambda entry: entry.update(nodes=nodes), data)
    assert reticent.read(folder).count("flu", where="age>=60").to_list()


def forged(folder, tmp_path, change, data=None):
    """A copy whose codebook says something else of ages, with digests to fit."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    book = json.loads((copy / "codebook.json").read_text())
    change(next(entry for entry in book["columns"] if entry["name"] == "age"))
    (copy / "codebook.json").write_text(json.dumps(book))
    if data is not None:
        (copy / "data.csv").write_text(data)
    manifest = json.loads((copy / "release.json").read_text())
    manifest["files"] = {name: hashlib.sha256((copy / name).read_bytes()).hexdigest() for name in manifest["files"]}
    (copy / "release.json").write_text(json.dumps(manifest))
    return copy


def test_one_release_given_twice_is_refused(table, tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{ill},9\n" for ill in ILLS))
    veil = {"privacy": {"l": 3}, "prior": {"file": "prior.csv"}, "table": {"method": "veil"}}
    rules = Policy.from_dict({"version": 1, "columns": COLUMNS, **veil}, base=tmp_path)
    first = reticent.anonymize(table.slice(0, 200), rules, store=tmp_path / "store.db").to_dir(tmp_path / "first")
    for other in (first, shutil.copytree(first, tmp_path / "again")):
        with pytest.raises(PolicyError, match="twice"):
            reticent.read(first, other)


@pytest.mark.parametrize("name", ["release.json", "codebook.json"])
def test_files_without_an_end_are_refused(general, tmp_path, name):
    copy = shutil.copytree(general, tmp_path / "copy")
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(DataError):
        reticent.read(copy)
    (copy / name).unlink()
    (copy / name).write_text("[" * 99_999)
    with pytest.raises(DataError):
        reticent.read(copy)
