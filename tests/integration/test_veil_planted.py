"""Disclosures planted in the folder of a veiled release, with digests that fit: each is refuted, by name, from the folder alone."""

import csv
import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent import Policy, anonymize, verify

VALUES = [f"d{code:02}" for code in range(12)]
COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [10, 20, 40]}},
    "sex": "quasi",
    "ill": "sensitive",
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    base = tmp_path_factory.mktemp("parameters_digest")
    lines = [
        f"{sex},{value},{5 + (code * step) % 7}\n"
        for sex, step in (("f", 1), ("m", 3))
        for code, value in enumerate(VALUES)
    ]
    (base / "prior.csv").write_text("sex,value,count\n" + "".join(lines))
    document = {"version": 1, "person": "id", "columns": COLUMNS, "privacy": {"l": 4}, "table": {"method": "veil"}}
    return Policy.from_dict(document | {"prior": {"file": "prior.csv"}}, base=base)


@pytest.fixture(scope="module")
def rows():
    rng, n = np.random.default_rng(3), 1200
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(0, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(VALUES, n),
        }
    )


@pytest.fixture(scope="module")
def good(rules, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "release"
    anonymize(rows, rules, store=rules.base / "veil.db").to_dir(folder)
    assert verify(folder, rules).holds
    assert verify(folder, rules, original=rows).holds
    return folder


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "release")


def edit_metadata(folder, name, change):
    document = json.loads((folder / name).read_text())
    change(document)
    indent = 2 if name == "release.json" else None
    (folder / name).write_text(json.dumps(document, sort_keys=True, indent=indent) + "\n")


def lines(folder, change):
    with (folder / "data.csv").open(newline="") as file:
        head, *cells = csv.reader(file)
    head, cells = change(head, cells)
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([head, *cells])


def refuted(folder, rules, **more):
    """The claims that fail when an attacker who planted it has also made the digests fit."""
    manifest = json.loads((folder / "release.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "release.json").write_text(json.dumps(manifest, sort_keys=True, indent=2) + "\n")
    return {finding.claim for finding in verify(folder, rules, **more).refuted}


MANIFEST = {
    "explain": (lambda m: m["explain"].update(cells=["p1", "d03"]), "explain contains only counts and settings"),
    "metrics": (lambda m: m["metrics"].update(p1="d03"), "metrics contains only numbers"),
    "names of metrics": (lambda m: m["metrics"].update({"p1 has d03": 1}), "metrics contains only numbers"),
    "versions": (lambda m: m["versions"].update(p1="d03"), "every entry of the manifest is well-formed"),
    "counts": (lambda m: m["records"].update(p1=3), "every entry of the manifest is well-formed"),
    "guarantee": (lambda m: m["guarantee"].update(p1="d03"), "every entry of the manifest is well-formed"),
    "method": (lambda m: m.update(method="p1 d03"), "every entry of the manifest is well-formed"),
    "time": (lambda m: m.update(time="p1 d03"), "every entry of the manifest is well-formed"),
    "another kind": (lambda m: m.update(kind="series"), "the codebook agrees with manifest, tables and policy"),
    "l": (lambda m: m["guarantee"]["claims"].update(l=9), "the veil claims only l and k"),
    "t": (lambda m: m["guarantee"]["claims"].update(t=0.1), "the veil claims only l and k"),
    "words": (
        lambda m: m["guarantee"]["not_covered"].append("p1"),
        "the codebook agrees with manifest, tables and policy",
    ),
}


@pytest.mark.parametrize("what", MANIFEST)
def test_the_manifest_is_closed_in_every_entry(folder, rules, what):
    change, claim = MANIFEST[what]
    edit_metadata(folder, "release.json", change)
    assert claim in refuted(folder, rules)


VEIL = {
    "a kernel": (lambda v: v.update(kernel={"p1": "d03"}), "the transition kernel is the policy's"),
    "epsilon": (lambda v: v.update(epsilon=0.001), "epsilon matches the prior's report or the policy"),
    "the parameter set": (
        lambda v: v.update(parameters_digest="p1 has d03"),
        "the digest matches the pinned veil parameters",
    ),
    "an omission rate without a stratum": (
        lambda v: v["omission_rate"].append(0.123),
        "every stratum of the prior states its omission rate",
    ),
    "cells among omission rates": (
        lambda v: v["omission_rate"].append("p1"),
        "every stratum of the prior states its omission rate",
    ),
    "an expensive omission rate": (
        lambda v: v.update(omission_rate_epsilon=9),
        "every stratum of the prior states its omission rate",
    ),
    "a large omission rate": (
        lambda v: v.update(omission_rate=[0.9] * len(v["omission_rate"])),
        "the stated omission rate is within the limit of one tenth",
    ),
}


@pytest.mark.parametrize("what", VEIL)
def test_the_document_says_what_policy_and_prior_say(folder, rules, what):
    change, claim = VEIL[what]
    edit_metadata(folder, "veil.json", change)
    assert claim in refuted(folder, rules)


def test_codebook_and_page_say_no_more_than_the_release(folder, rules):
    page = folder / "README.txt"
    page.write_text(page.read_text() + "p1 has d03\n")
    assert refuted(folder, rules) == {"README.txt matches the codebook"}
    edit_metadata(folder, "codebook.json", lambda book: book["columns"][0].update(meaning="p1 has d03"))
    assert "the codebook agrees with manifest, tables and policy" in refuted(folder, rules)


def test_a_file_is_none_of_the_release_because_the_manifest_lists_it(folder, rules, rows):
    pa.csv.write_csv(rows, folder / "input.csv")
    edit_metadata(folder, "release.json", lambda m: m["files"].update({"input.csv": ""}))
    assert "the folder has only files of its shape, each once" in refuted(folder, rules)


def test_a_table_stands_in_one_format(folder, rules, rows):
    """The verifier would read one of them, and recipients the other."""
    pq.write_table(pa.csv.read_csv(folder / "data.csv"), folder / "data.parquet")
    pa.csv.write_csv(rows, folder / "data.csv")
    edit_metadata(folder, "release.json", lambda m: m["files"].update({"data.parquet": ""}))
    assert "the folder has only files of its shape, each once" in refuted(folder, rules)


def test_a_second_column_of_the_same_name_is_seen(folder, rules, rows):
    lines(folder, lambda head, cells: ([*head, "age"], [[*row, "p1"] for row in cells]))
    assert "no column name occurs twice in a table" in refuted(folder, rules)
    assert "no column name occurs twice in a table" in refuted(folder, rules, original=rows)


def test_numbers_are_written_in_one_way(folder, rules):
    """A leading zero is a bit about a person."""

    def change(head, cells):
        at = head.index("event")
        return head, [[*row[:at], "00", *row[at + 1 :]] for row in cells]

    lines(folder, change)
    assert "events are counted from 0" in refuted(folder, rules)


def test_fields_stand_at_their_level(folder, rules):
    lines(folder, lambda head, cells: (head, [["33", *row[1:]] if row[0] == "[30, 40)" else row for row in cells]))
    assert "published values are at the policy's level or above" in refuted(folder, rules)


def test_later_events_do_not_stand_where_nobody_has_any(folder, rules):
    def change(head, cells):
        at, rng = head.index("event"), np.random.default_rng(1)
        return head, [[*row[:at], "7", *sorted(rng.choice(VALUES, 4, replace=False))] for row in cells]

    lines(folder, change)
    assert {"persons with one record have no later event", "without a transition kernel, no set changes"} <= refuted(
        folder, rules
    )


def test_persons_are_not_lost_as_suppressed_ones(folder, rules):
    lines(folder, lambda head, cells: (head, cells[:800]))
    edit_metadata(folder, "release.json", lambda m: m["records"].update(published=800, suppressed=400))
    assert "suppressed rows are within the policy's limit" in refuted(folder, rules)


def test_lines_in_the_order_of_the_true_value_are_found(good, folder, rules, rows, tmp_path):
    """Sorting by the true value discloses it: it is what the sets of neighbors have in common."""
    true_values = dict(zip(rows["id"].to_pylist(), rows["ill"].to_pylist(), strict=True))
    tagged = Policy.from_dict(
        rules.to_dict() | {"columns": rules.to_dict()["columns"] | {"tag": "plain"}}, base=rules.base
    )
    release = anonymize(rows.append_column("tag", rows["id"]), tagged, store=tmp_path / "veil.db")
    data = release.tables["data"]
    order = sorted(range(data.num_rows), key=lambda at: true_values[data["tag"][at].as_py()])
    shown = data.take(order).drop_columns("tag").to_pylist()
    names = json.loads((folder / "codebook.json").read_text())["columns"]
    head = [entry["name"] for entry in names]
    lines(folder, lambda _, __: (head, [[str(row[name]) for name in head] for row in shown]))
    assert "the order of records discloses nothing" in refuted(folder, rules)


def test_a_folder_that_lacks_a_column_is_refuted_and_no_bug(folder, rules, rows):
    edit_metadata(folder, "veil.json", lambda v: v.update(l=5))
    edit_metadata(folder, "release.json", lambda m: m["guarantee"]["claims"].update(veil=5))
    assert refuted(folder, rules, original=rows)
