"""Folders that say more than they should, or that nobody can read, each with digests, codebook and README to fit."""

import contextlib
import hashlib
import json
import os
import random
import signal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from reticent import EvolvingTable, Policy, Series, anonymize, audit, verify
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.release.codebook import describe_columns, readme
from reticent.release.folder import read_csv
from reticent.release.wording import claims_in_words
from reticent.report.page import render_html
from reticent.verify.published import read_release

VALUES = [f"d{at}" for at in range(6)]
TREE = {"*": {"low": VALUES[:3], "high": VALUES[3:]}}
COLUMNS = {
    "id": "identifier",
    "sex": "quasi",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "ill": {"role": "sensitive", "hierarchy": {"tree": TREE}, "updates": {"tree": 1}},
}
TABLES = {
    "patients": {"person": "id", "key": "id", "columns": ["sex"]},
    "visits": {"person": "id", "visit": "visit", "key": "visit", "columns": ["age"]},
    "ills": {"person": "id", "visit": "visit", "columns": ["ill"]},
}


def people(count=120):
    rng = random.Random(4)
    rows = [(f"p{at}", rng.choice("fm"), str(rng.randint(20, 80)), rng.choice(VALUES)) for at in range(count)]
    return pa.table(dict(zip(("id", "sex", "age", "ill"), map(pa.array, zip(*rows, strict=True)), strict=True)))


def rules(**sections):
    return Policy.from_dict({"version": 1, "person": "id", "columns": COLUMNS, **sections})


def generalised(tmp_path, method="auto", file_format="csv"):
    privacy = {"l": 3} if method == "anatomy" else {"k": 4, "suppression": 0.1}
    policy = rules(privacy=privacy, table={"method": method, "supervision": {"sample": 60}})
    return anonymize(people(), policy, seed=1).to_dir(tmp_path / "release", format=file_format), policy


def anatomy(tmp_path):
    policy = rules(privacy={"l": 3, "suppression": 0.2}, table={"method": "anatomy"})
    return anonymize(people(), policy, seed=1).to_dir(tmp_path / "release"), policy


def evolving(tmp_path):
    policy = rules(privacy={"l": 3}, evolving={"method": "enc"})
    table = EvolvingTable(tmp_path / "store.db", policy)
    table.insert(people())
    table.publish(tmp_path / "release")
    return tmp_path / "release", policy


def series(tmp_path):
    policy = rules(series={"method": "m-distinct", "m": 3})
    releases = Series(tmp_path / "store.db", policy, seed=1)
    releases.publish(people(), tmp_path / "first")
    releases.publish(people().slice(0, 70), tmp_path / "release")  # who left is replaced by counterfeits
    return tmp_path / "release", policy


def linked(tmp_path):
    policy = rules(tables=TABLES, privacy={"k": 3})
    rows, visits = people(60), [f"v{at}" for at in range(60)]
    tables = {
        "patients": rows.select(["id", "sex"]),
        "visits": rows.select(["id", "age"]).append_column("visit", pa.array(visits)),
        "ills": rows.select(["id", "ill"]).append_column("visit", pa.array(visits)),
    }
    return anonymize(tables, policy, seed=1).to_dir(tmp_path / "release"), policy


def manifest(folder, change):
    """Changes the manifest; codebook, README and digests follow as a careless engine's would."""
    content = json.loads((folder / "release.json").read_text())
    change(content)
    written(folder / "release.json", content)


def written(file, content):
    indent = 2 if file.name == "release.json" else None
    file.write_text(json.dumps(content, indent=indent, sort_keys=True) + "\n")


def table(folder, name, change):
    file = folder / f"{name}.csv"
    rows = change(read_csv(file))
    with file.open("wb") as target:
        pa.csv.write_csv(rows, target)


def cells(name, change):
    """A change of one column, cell by cell."""

    def changed(rows):
        texts = [None if cell is None else change(cell) for cell in rows[name].to_pylist()]
        return rows.set_column(rows.column_names.index(name), name, pa.array(texts, pa.string()))

    return changed


def verify_forged(folder, policy, *, follow=True):
    """What the verifier says after codebook, README and digests were rewritten; it must answer within seconds."""
    if follow:
        content = json.loads((folder / "release.json").read_text())
        book = json.loads((folder / "codebook.json").read_text())
        book["records"], seen = content["records"], read_release(folder, "")
        book["columns"] = describe_columns(dict(seen.tables), seen.shape, policy)
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            book["guarantee"] = content["guarantee"] | {"words": claims_in_words(content["guarantee"]["claims"])}
        written(folder / "codebook.json", book)
        (folder / "README.txt").write_text(readme(book))
    with contextlib.suppress(RecursionError):
        manifest(folder, lambda content: content["files"].update(digests(folder, content["files"])))
    return verify(folder, policy)


def digests(folder, names):
    files = [folder / name for name in names if (folder / name).is_file()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(autouse=True)
def soon():
    """Ends a test whose verifier waits for ever."""

    def late(*_):
        raise AssertionError  # TimeoutError is an OSError, which the verifier takes for an unreadable file

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


MAKERS = [generalised, anatomy, evolving, series, linked]


@pytest.mark.parametrize("make", MAKERS)
def test_rewritten_metadata_files_hold(tmp_path, make):
    assert verify_forged(*make(tmp_path)).holds


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "supervised", "anatomy"])
def test_what_each_method_explains_holds(tmp_path, method):
    assert verify(*generalised(tmp_path, method)).holds


@pytest.mark.parametrize("name", ["codebook.json", "README.txt", "data.csv"])
def test_what_is_no_file_is_refuted_and_not_waited_for(tmp_path, name):
    folder, policy = generalised(tmp_path)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert not verify_forged(folder, policy, follow=False).holds


def test_a_manifest_that_is_no_file_is_said_to_be_none(tmp_path):
    folder, policy = generalised(tmp_path)
    (folder / "release.json").unlink()
    os.mkfifo(folder / "release.json")
    with pytest.raises(DataError):
        verify(folder, policy)


@pytest.mark.parametrize("name", ["release.json", "codebook.json"])
def test_deeply_nested_metadata_files_do_not_pass(tmp_path, name):
    folder, policy = generalised(tmp_path)
    content = (folder / name).read_text().rstrip()[:-1]
    (folder / name).write_text(content + ', "more": ' + "[" * 99_999 + "]" * 99_999 + "}\n")
    if name == "release.json":
        with pytest.raises(DataError, match="corrupt"):
            verify(folder, policy)
    else:
        assert not verify_forged(folder, policy, follow=False).holds


@pytest.mark.parametrize("claim", ["k", "l", "t"])
def test_a_claim_that_takes_for_ever_to_read_is_refuted(tmp_path, claim):
    folder, policy = generalised(tmp_path)
    manifest(folder, lambda content: content["guarantee"]["claims"].update({claim: "1e999999999"}))
    assert "every claim is well-formed" in [one.claim for one in verify_forged(folder, policy, follow=False).refuted]


def test_counterfeits_have_their_columns_alone(tmp_path):
    folder, policy = series(tmp_path)
    table(folder, "counterfeits", lambda rows: rows.append_column("who", pa.array(["p7"] * rows.num_rows)))
    assert not verify_forged(folder, policy).holds


def test_counterfeits_of_a_group_are_listed_once(tmp_path):
    folder, policy = series(tmp_path)
    table(
        folder,
        "counterfeits",
        lambda rows: pa.concat_tables([rows.slice(0, 1).set_column(1, "count", pa.array([77])), rows]),
    )
    assert not verify_forged(folder, policy).holds


@pytest.mark.parametrize(
    ("make", "name", "column"),
    [
        (series, "counterfeits", "count"),
        (series, "counterfeits", "group"),
        (anatomy, "st", "count"),
        (anatomy, "st", "group"),
        (anatomy, "qit", "group"),
        (evolving, "qit", "group"),
        (evolving, "st", "count"),
    ],
)
@pytest.mark.parametrize("notation", ["0{}", "+{}", "{}\u200b", "\uff10{}", "{}.0"])
def test_numbers_have_one_notation(tmp_path, make, name, column, notation):
    folder, policy = make(tmp_path)
    table(folder, name, cells(column, notation.format))
    assert not verify_forged(folder, policy).holds


@pytest.mark.parametrize("column", ["person", "visit"])
def test_pseudonyms_of_linked_tables_name_nobody(tmp_path, column):
    folder, policy = linked(tmp_path)
    for file in folder.glob("*.csv"):
        if column in read_csv(file).column_names:
            table(folder, file.stem, cells(column, lambda cell: f"{cell} Miller"))
    assert not verify_forged(folder, policy).holds


def test_rows_of_linked_tables_are_sorted_by_their_pseudonyms(tmp_path):
    folder, policy = linked(tmp_path)
    table(folder, "ills", lambda rows: rows.take(pa.array(sorted(range(60), key=rows["ill"].to_pylist().__getitem__))))
    assert not verify_forged(folder, policy).holds


@pytest.mark.parametrize(
    "lie",
    [
        lambda content: content["records"].update(published=5),
        lambda content: content["explain"]["published_rows"].update(ills=-3),
        lambda content: content["explain"]["input_rows"].update(ills=5),
        lambda content: content["explain"].update(persons=7),
        lambda content: content["explain"].update(classes=10**6),
    ],
)
def test_counts_of_linked_tables_are_those_of_the_tables(tmp_path, lie):
    folder, policy = linked(tmp_path)
    manifest(folder, lie)
    assert not verify_forged(folder, policy).holds


@pytest.mark.parametrize("other", [float, bool])
def test_numbers_of_the_codebook_are_written_as_they_are_meant(tmp_path, other):
    folder, policy = generalised(tmp_path)
    book = json.loads((folder / "codebook.json").read_text())
    book["records"]["withheld"] = other(book["records"]["withheld"])
    written(folder / "codebook.json", book)
    assert not verify_forged(folder, policy, follow=False).holds


def test_a_sentence_is_said_once(tmp_path):
    folder, policy = generalised(tmp_path)
    manifest(folder, lambda content: content["guarantee"].update(not_covered=content["guarantee"]["not_covered"] * 2))
    assert not verify_forged(folder, policy).holds


def longer_levels(explain):
    explain["attributes"]["age"]["records_per_level"] += [0] * 500
    explain["attributes"]["age"]["height"] += 500


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        ("local", longer_levels),
        ("local", lambda explain: explain["attributes"]["age"]["records_per_level"].append(0)),
        ("local", lambda explain: explain.update(suppressed=explain["suppressed"] + 1)),
        ("auto", lambda explain: explain.update(tried=explain["tried"] * 20)),
        ("supervised", lambda explain: explain.update(batches=explain["batches"] * 400)),
        ("supervised", lambda explain: explain["utility"].update({"age sex": 1, "sex age": 1, "sex sex": 1})),
    ],
)
def test_explanations_have_an_end(tmp_path, method, lie):
    folder, policy = generalised(tmp_path, method)
    manifest(folder, lambda content: lie(content["explain"]))
    assert not verify_forged(folder, policy).holds


def test_a_second_column_of_the_same_name_is_refuted_in_parquet(tmp_path):
    folder, policy = generalised(tmp_path, file_format="parquet")
    rows = pq.read_table(folder / "data.parquet")
    pq.write_table(rows.append_column("sex", rows["sex"]), folder / "data.parquet")
    assert "no column name occurs twice in a table" in [
        one.claim for one in verify_forged(folder, policy, follow=False).refuted
    ]


@pytest.mark.parametrize(
    "lines", [b"\xff\xfe\n", b'{"type": "tuple"}\n', b'{"type": "group"}\n[]\n', b'{"type": "record", "seq": {}}\n']
)
def test_an_audit_of_what_has_no_form_says_so(tmp_path, lines):
    policy = rules(privacy={"l": 2}, stream={"method": "delay-free"})
    (tmp_path / "out.ndjson").write_bytes(lines)
    try:
        assert audit(tmp_path / "out.ndjson", policy).refuted
    except GuaranteeError as error:
        assert "refuted" in str(error)  # noqa: PT017 - either is an answer


def test_an_audit_of_forged_tables_says_so(tmp_path):
    folder, policy = anatomy(tmp_path)
    table(folder, "st", lambda rows: rows.drop_columns(["count"]))
    with pytest.raises(GuaranteeError, match="refuted"):
        audit(folder, policy)


@pytest.mark.parametrize("method", ["mondrian", "anatomy"])
def test_cells_of_a_file_without_a_header_are_not_shown(tmp_path, method):
    policy = rules(privacy={"k": 2}) if method == "mondrian" else rules(privacy={"l": 2})
    file = tmp_path / "in.csv"
    file.write_text("".join(f"CANARY{at},f,30,d{at % 6}\n" for at in range(30)))
    for store in (None, tmp_path / "store.db"):
        with pytest.raises(PolicyError, match="first line") as refusal:
            anonymize(file, policy, method=method, store=store)
        assert "CANARY" not in str(refusal.value)


def test_supervision_that_leaves_nothing_to_learn_from_is_no_bug(tmp_path):
    policy = rules(privacy={"k": 100, "suppression": 1}, table={"method": "supervised", "supervision": {"sample": 60}})
    with contextlib.suppress(GuaranteeError):
        anonymize(people(), policy, seed=1)


def test_an_audit_of_an_empty_release_with_its_input_gives_an_answer(tmp_path):
    folder, policy = generalised(tmp_path, "mondrian")
    table(folder, "data", lambda rows: rows.slice(0, 0))
    assert audit(folder, policy, original=people()).refuted


def test_a_policy_hash_of_no_form_is_shown_as_it_is(tmp_path):
    folder, policy = generalised(tmp_path)
    manifest(folder, lambda content: content.update(policy_hash=True))
    assert render_html(audit(folder, policy))
