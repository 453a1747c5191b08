"""What a reader of tables does not see, and somebody who is told to look does: planted in folders with digests that fit, refuted by name."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from reticent import Policy, anonymize, verify
from reticent.release.codebook import citation, readme
from reticent.release.wording import AGAINST, find_unknown_sentences

COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "sex": "quasi",
    "ward": "plain",
    "ill": "sensitive",
}
WRITTEN = "every file is in its canonical form"
FORM = "every entry of the manifest is well-formed"
BOOK = "the codebook agrees with manifest, tables and policy"
WORDS = "the guarantee uses the sentences of its method"


def policy(method):
    privacy = {"l": 3} if method == "anatomy" else {"k": 3, "l": 2, "suppression": 0.2}
    return Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": privacy, "table": {"method": method}})


def rows(n=240):
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "ward": [None if i % 40 == 0 else "=1+1" if i % 41 == 0 else "a" for i in range(n)],
            "ill": [f"d{i}" for i in rng.integers(0, 8, n)],
        }
    )


@pytest.fixture(scope="module", params=["optimal", "anatomy"])
def good(request, tmp_path_factory):
    base = tmp_path_factory.mktemp("good")
    release = anonymize(rows(), policy(request.param), seed=2)
    for form in ("csv", "parquet"):
        release.to_dir(base / form, format=form)
        assert verify(base / form, policy(request.param)).holds
    return base, policy(request.param)


def planted(good, tmp_path, form="csv"):
    folder, rules = good
    return shutil.copytree(folder / form, tmp_path / "release"), rules


def stored(folder, name, document):
    indent = 2 if name == "release.json" else None
    (folder / name).write_text(json.dumps(document, indent=indent, sort_keys=True) + "\n")


def fitting(folder):
    """Digests as an attacker who planted something would make them."""
    manifest = json.loads((folder / "release.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    stored(folder, "release.json", manifest)


def refuted(folder, rules, **more):
    return {finding.claim for finding in verify(folder, rules, **more).refuted}


def some(text, change):
    lines = text.split(b"\n")
    return b"\n".join(change(line) if at % 3 == 1 else line for at, line in enumerate(lines[:-1])) + b"\n"


CSV = {
    "a mark of the byte order": lambda text: b"\xef\xbb\xbf" + text,
    "ends of lines": lambda text: some(text, lambda line: line + b"\r"),
    "empty lines": lambda text: some(text, lambda line: line + b"\n"),
    "texts without quotes": lambda text: some(text, lambda line: re.sub(rb'"(\w+)"', rb"\1", line)),
    "numbers in quotes": lambda text: some(text, lambda line: re.sub(rb"(^|,)(\d+)(?=,|$)", rb'\1"\2"', line)),
    "no end": lambda text: text[:-1],
    "a line behind the end": lambda text: text + b"\n",
}


@pytest.mark.parametrize("what", CSV)
def test_tables_are_written_in_one_way(good, tmp_path, what):
    folder, rules = planted(good, tmp_path)
    changed = 0
    for table in folder.glob("*.csv"):
        before = table.read_bytes()
        table.write_bytes(CSV[what](before))
        changed += table.read_bytes() != before
    fitting(folder)
    assert (WRITTEN in refuted(folder, rules)) == bool(changed)


JSON = {
    "spaces": lambda text: text + " ",
    "the order of keys": lambda text: json.dumps(dict(reversed(json.loads(text).items()))) + "\n",
    "a key twice": lambda text: '{"kind": "p1 has d3", ' + text[1:],
}


@pytest.mark.parametrize("name", ["release.json", "codebook.json"])
@pytest.mark.parametrize("what", JSON)
def test_documents_are_written_in_one_way(good, tmp_path, what, name):
    folder, rules = planted(good, tmp_path)
    (folder / name).write_text(JSON[what]((folder / name).read_text()))
    if name != "release.json":
        fitting(folder)
    assert WRITTEN in refuted(folder, rules)


def footer(file):
    content = file.read_bytes()
    size = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:-size] + b"p1 has d3" + content[-size:])


def noted(table, *, field):
    if not field:
        return table.replace_schema_metadata({"note": "p1 has d3"})
    return table.cast(pa.schema([column.with_metadata({"note": "p1"}) for column in table.schema]))


def with_unused_word(column):
    if not pa.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()
    words = pa.concat_arrays([coded.dictionary, pa.array(["p1 has d3"])])
    return pa.DictionaryArray.from_arrays(coded.indices, words)


def parts(file, table):
    with pq.ParquetWriter(file, table.schema) as writer:
        for at in range(0, table.num_rows, 50):
            writer.write_table(table.slice(at, 50))


PARQUET = {
    "words in the footer": lambda file, table: pq.write_table(noted(table, field=False), file),
    "words at a column": lambda file, table: pq.write_table(noted(table, field=True), file),
    "parts": parts,
    "compression": lambda file, table: pq.write_table(table, file, compression="zstd"),
    "pages": lambda file, table: pq.write_table(table, file, data_page_size=64, use_dictionary=False),
    "bytes before the footer": lambda file, table: footer(file),
    "a word that no cell has": lambda file, table: pq.write_table(
        pa.table([with_unused_word(column) for column in table.columns], names=table.column_names), file
    ),
}


@pytest.mark.parametrize("what", PARQUET)
def test_parquet_holds_its_columns_and_nothing_else(good, tmp_path, what):
    folder, rules = planted(good, tmp_path, "parquet")
    for file in folder.glob("*.parquet"):
        PARQUET[what](file, pq.read_table(file))
    fitting(folder)
    assert WRITTEN in refuted(folder, rules)


def told(sentence):
    def change(manifest, book):
        for words in (manifest["guarantee"], book["guarantee"]):
            words["not_covered"] = [*words["not_covered"], sentence]

    return change


def against(manifest, book):
    manifest["guarantee"]["against"] = book["guarantee"]["against"] = "a reader; p1 has d3"


def silent(manifest, book):
    manifest["guarantee"]["not_covered"] = book["guarantee"]["not_covered"] = []


def hashed(manifest, book):
    manifest["policy_hash"] = "p1hasd3"
    book["cite"] = citation(manifest["kind"], manifest["method"], "p1hasd3")


def columns(change):
    return lambda _, book: book.update(columns=change(book["columns"]))


METADATA = {
    "a sentence": (told("p1 has d3"), WORDS),
    "a sentence behind a known one": (
        told("singling out by published quasi-identifiers; p1 has d3"),
        WORDS,
    ),
    "a column that is a cell": (
        told("an attacker who knows what a plain (unchanged) column says about a person (p1 has d3)"),
        WORDS,
    ),
    "against": (against, WORDS),
    "nothing left open": (silent, WORDS),
    "the hash": (hashed, FORM),
    "a figure's name": (lambda m, _: m["metrics"].update(p_one_has_d_three=1), "metrics contains only numbers"),
    "a figure's digits": (
        lambda m, _: m["metrics"].update(discernibility=int("1" * 300)),
        "metrics contains only numbers",
    ),
    "a figure that is a word": (lambda m, _: m["metrics"].update(discernibility=True), "metrics contains only numbers"),
    "a setting": (lambda m, _: m["explain"].update(loss="p1_has_d3"), "explain contains only counts and settings"),
    "a version": (lambda m, _: m["versions"].update(python="3.p1-d3"), FORM),
    "a moment": (lambda m, _: m.update(time="2026-99-99T99:99:99+00:00"), FORM),
    "the format": (lambda m, _: m.update(format=20), FORM),
    "a node": (columns(lambda all_: [one | {"nodes": {"p1 has d3": {"below": []}}} for one in all_]), BOOK),
    "a level": (columns(lambda all_: [one | {"level": 9} for one in all_]), BOOK),
    "roles": (columns(lambda all_: [one | {"role": "plain"} for one in all_]), BOOK),
    "types": (columns(lambda all_: [one | {"type": "date"} for one in all_]), BOOK),
    "columns again and again": (columns(lambda all_: all_ * 3), BOOK),
    "columns that are not told": (columns(lambda all_: all_[1:]), BOOK),
}


@pytest.mark.parametrize("what", METADATA)
def test_metadata_files_say_what_method_table_and_policy_say(good, tmp_path, what):
    folder, rules = planted(good, tmp_path)
    change, claim = METADATA[what]
    manifest, book = (json.loads((folder / name).read_text()) for name in ("release.json", "codebook.json"))
    change(manifest, book)
    stored(folder, "release.json", manifest)
    stored(folder, "codebook.json", book)
    (folder / "README.txt").write_text(readme(book))
    fitting(folder)
    assert claim in refuted(folder, rules)


def standing(folder, key):
    """Rows of a generalized table in another order, with a digest that fits."""
    table = pyarrow.csv.read_csv(
        folder / "data.csv",
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={"age": pa.string(), "ill": pa.string()},
            quoted_strings_can_be_null=False,
            strings_can_be_null=True,
        ),
    )
    lines = table.to_pylist()
    order = sorted(range(len(lines)), key=lambda at: key(lines[at]))
    pyarrow.csv.write_csv(table.take(pa.array(order)), folder / "data.csv")
    fitting(folder)


ORDERS = {
    "the input": lambda line: int(line["ward"]),
    "an exact field inside classes": lambda line: (hash((line["age"], line["sex"])), line["ward"]),
}


@pytest.mark.parametrize("what", ORDERS)
def test_rows_do_not_stand_by_what_is_known_of_persons(tmp_path, what):
    rules = policy("optimal")
    people = rows()
    # Everybody has a value of an own, so that a reader of the input knows who stands where.
    people = people.set_column(3, "ward", pa.array([str(1000 + i) for i in range(people.num_rows)]))
    anonymize(people, rules, seed=3).to_dir(tmp_path / "release")
    assert verify(tmp_path / "release", rules, original=people).holds
    standing(tmp_path / "release", ORDERS[what])
    claims = refuted(tmp_path / "release", rules, original=people)
    assert claims == {"the order of rows discloses nothing"}
    standing(tmp_path / "release", lambda line: [str(cell) for cell in line.values()])
    assert verify(tmp_path / "release", rules, original=people).holds  # by what is published anyway


def test_a_guarantee_may_name_columns_and_how_many_more():
    words = "an attacker who knows what a plain (unchanged) column says about a person (a, b and {} more)"
    assert not find_unknown_sentences(AGAINST["generalized"], [words.format(32)], ["a", "b"])
    assert find_unknown_sentences(AGAINST["generalized"], [words.format("p1")], ["a", "b"]) == ["sentence 1"]


@pytest.mark.parametrize("entry", ["explain", "metrics"])
@pytest.mark.parametrize("what", ["p1 has d3", ["p1 has d3"], None], ids=["a sentence", "sentences", "nothing"])
def test_what_should_be_figures_by_name_is_nothing_else(good, tmp_path, entry, what):
    folder, rules = planted(good, tmp_path)
    stored(folder, "release.json", json.loads((folder / "release.json").read_text()) | {entry: what})
    assert FORM in refuted(folder, rules)


def test_a_manifest_that_lists_no_file_lets_none_lie_there(good, tmp_path):
    folder, rules = planted(good, tmp_path)
    (folder / "notes.txt").write_text("p1 has d3")
    stored(folder, "release.json", json.loads((folder / "release.json").read_text()) | {"files": {}})
    assert "the folder contains only files that the manifest lists" in refuted(folder, rules)


@pytest.mark.parametrize("odd", [[], {}, [5], {"a": []}], ids=str)
@pytest.mark.parametrize("entry", ["kind", "shape", "method"])
def test_words_of_the_manifest_that_are_none_are_refuted_and_no_bug_of_the_verifier(good, tmp_path, entry, odd):
    folder, rules = planted(good, tmp_path)
    stored(folder, "release.json", json.loads((folder / "release.json").read_text()) | {entry: odd})
    assert FORM in refuted(folder, rules)


def test_odd_entries_further_inside_are_refuted_too(good, tmp_path):
    folder, rules = planted(good, tmp_path)
    book = json.loads((folder / "codebook.json").read_text())
    book["columns"][0]["type"] = ["p1 has d3"]
    stored(folder, "codebook.json", book)
    fitting(folder)
    assert BOOK in refuted(folder, rules)
    manifest = json.loads((folder / "release.json").read_text())
    manifest["guarantee"]["claims"]["l"] = {"persons": 5}
    manifest["explain"] |= {"batches": [5], "tried": [{"method": ["p1"]}]}
    stored(folder, "release.json", manifest)
    assert {BOOK, "explain contains only counts and settings"} <= refuted(folder, rules)
