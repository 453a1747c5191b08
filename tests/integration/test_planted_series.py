"""Evolving tables, series and streams: orders, numbers and notations that disclose, and what only the input shows; refuted by name."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from reticent import verify
from reticent.cli import main
from reticent.policy import Policy

VALUES = [f"d{code}" for code in range(9)]
COLUMNS = {"id": "identifier", "age": "quasi", "sex": "quasi", "ward": "plain", "ill": "sensitive"}
UPDATES = "value,next,probability\n" + "".join(f"{a},{b},{1 / 9}\n" for a in VALUES for b in VALUES)
KINDS = {
    "enc": {"evolving": {"method": "enc"}, "privacy": {"l": 3}},
    "indexed": {"evolving": {"method": "indexed"}, "privacy": {"l": 3}},
    "m-distinct": {"series": {"method": "m-distinct", "m": 3, "max_risk": 1}, "privacy": {"l": 3}},
    "delay-free": {"stream": {"method": "delay-free"}, "privacy": {"l": 3}, "prior": {"file": "prior.csv"}},
    "castle": {"stream": {"method": "castle", "delta": 40}, "privacy": {"k": 3, "l": 2}},
}


def run(*args):
    with pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    assert not end.value.code


def written(base, kind):
    columns = dict(COLUMNS)
    if kind == "m-distinct":
        columns["ill"] = {"role": "sensitive", "updates": {"file": "updates.csv"}}
        columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [10, 40]}}
    (base / "updates.csv").write_text(UPDATES)
    (base / "prior.csv").write_text("value,count\n" + "".join(f"{value},10\n" for value in VALUES))
    (base / "policy.json").write_text(json.dumps({"version": 1, "person": "id", "columns": columns} | KINDS[kind]))
    rng, n = np.random.default_rng(9), 240
    rows = {
        "id": [f"p{i}" for i in range(n)],
        "age": rng.integers(20, 90, n),
        "sex": rng.choice(["f", "m"], n),
        "ward": rng.choice(["a", "b", "c"], n),
        "ill": [VALUES[i % 9] for i in rng.permutation(n)],
    }
    pc.write_csv(pa.table(rows), base / "data.csv")


def published(base, kind):
    policy, store, out = base / "policy.json", base / "store.db", base / "out"
    if "evolving" in KINDS[kind]:
        run("evolve", "init", store, "-p", policy)
        run("evolve", "insert", store, base / "data.csv")
        run("evolve", "publish", store, "-o", out)
    elif "series" in KINDS[kind]:
        run("republish", base / "data.csv", "-p", policy, "--store", store, "-o", out)
    else:
        out = base / "out.ndjson"
        run("stream", base / "data.csv", "-p", policy, "--store", store, "--to", out, "--final")
    return out


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    made = {}

    def of(kind):
        if kind not in made:
            base = tmp_path_factory.mktemp(kind.replace("*", ""))
            written(base, kind)
            out = published(base, kind)
            policy = Policy.load(base / "policy.json")
            assert verify(out, policy).holds
            assert verify(out, policy, original=base / "data.csv").holds
            made[kind] = base, out.name
        return made[kind]

    return of


@pytest.fixture
def planted(kept, tmp_path):
    def of(kind):
        base, name = kept(kind)
        folder = shutil.copytree(base, tmp_path / "parameters_digest")
        return folder / name, Policy.load(folder / "policy.json")

    return of


def table(folder, name, change):
    """Rewrites a table as a release would, with a digest that fits."""
    with (folder / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = change(rows)
    numbers = {"group", "count"}
    columns = {key: [int(row[key]) if key in numbers else row[key] for row in rows] for key in rows[0]}
    pc.write_csv(pa.table(columns), folder / f"{name}.csv")
    manifest = json.loads((folder / "release.json").read_text())
    manifest["files"][f"{name}.csv"] = hashlib.sha256((folder / f"{name}.csv").read_bytes()).hexdigest()
    (folder / "release.json").write_text(json.dumps(manifest, sort_keys=True, indent=2) + "\n")


def refuted(out, policy, **more):
    return {finding.claim for finding in verify(out, policy, **more).refuted}


def true_values(out):
    with (out.parent / "data.csv").open(newline="") as file:
        return {(row["age"], row["sex"], row["ward"]): row["ill"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("kind", ["enc", "indexed"])
def test_rows_in_the_order_of_their_values(planted, kind):
    out, policy = planted(kind)
    ill = true_values(out)

    def by_true_value(rows):
        return sorted(rows, key=lambda row: (int(row["group"]), ill[row["age"], row["sex"], row["ward"]]))

    table(out, "qit", by_true_value)
    assert refuted(out, policy) == {"rows of 'qit' are sorted by group and text"}


@pytest.mark.parametrize("kind", ["enc", "indexed"])
def test_groups_numbered_by_a_value(planted, kind):
    out, policy = planted(kind)
    with (out / "st.csv").open(newline="") as file:
        lowest = {row["group"]: row["value"] for row in reversed(list(csv.DictReader(file)))}
    number = {group: str(at) for at, group in enumerate(sorted(lowest, key=lambda group: lowest[group]))}

    def renumbered(rows):
        rows = [row | {"group": number[row["group"]]} for row in rows]
        return sorted(rows, key=lambda row: int(row["group"]))

    table(out, "qit", renumbered)
    table(out, "st", renumbered)
    assert "groups are numbered in the order of their rows" in refuted(out, policy)


def test_values_of_another_group_are_found_with_the_input(planted):
    out, policy = planted("enc")

    def turned(rows):
        values = [row["value"] for row in rows]
        size = next(at for at, row in enumerate(rows) if row["group"] != rows[0]["group"])
        moved = values[size:] + values[:size]
        rows = [row | {"value": value} for row, value in zip(rows, moved, strict=True)]
        return sorted(rows, key=lambda row: (int(row["group"]), row["value"]))

    table(out, "st", turned)
    claim = "every published record comes from the input"  # with its value among those of its group
    assert claim in refuted(out, policy, original=out.parent / "data.csv")


def test_cells_of_an_evolving_table_are_those_of_the_input(planted):
    out, policy = planted("enc")
    change = {"a": "b", "b": "c", "c": "a"}
    table(out, "qit", lambda rows: [row | {"ward": change[row["ward"]]} for row in rows])
    claim = "every published record comes from the input"
    assert claim in refuted(out, policy, original=out.parent / "data.csv")


@pytest.mark.parametrize(("name", "column"), [("data", "ill"), ("plain", "ward")])
def test_lines_of_a_series_stand_by_group_and_text(planted, name, column):
    out, policy = planted("m-distinct")
    table(out, name, lambda rows: sorted(rows, key=lambda row: (int(row["group"]), row[column]), reverse=True)[::1])
    claims = refuted(out, policy)
    assert f"rows of '{name}' are sorted by group and text" in claims


def test_numbers_of_groups_of_a_series_tell_nothing(planted):
    out, policy = planted("m-distinct")
    for name in ("data", "plain"):
        table(out, name, lambda rows: [row | {"group": str(7 * int(row["group"]))} for row in rows])
    assert "groups are numbered from 1" in refuted(out, policy)


def test_a_series_says_that_it_is_not_compared_with_the_input(planted):
    out, policy = planted("m-distinct")
    assert any(
        "comparison with the original" in words
        for words in verify(out, policy, original=out.parent / "data.csv").unchecked
    )


def one_in_three(change):
    return lambda lines: [change(line) if at % 3 == 1 else line for at, line in enumerate(lines)]


def reversed_keys(line):
    return json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":"))


WRITTEN = "every line is in its canonical form"
STREAM = {
    "keys": (one_in_three(reversed_keys), WRITTEN),
    "spaces": (one_in_three(lambda line: json.dumps(json.loads(line))), WRITTEN),
    "a space behind": (one_in_three(lambda line: line + " "), WRITTEN),
    "an end": (one_in_three(lambda line: line + "\r"), WRITTEN),
    "an empty line": (one_in_three(lambda line: line + "\n"), WRITTEN),
    "escapes": (one_in_three(lambda line: line.replace('"f"', '"\\u0066"')), WRITTEN),
    "a missing cell": (
        one_in_three(lambda line: re.sub(r'"ward":"\w"', "", line)),
        "only columns that the policy releases are published",
    ),
}


def test_a_value_of_castle_is_written_in_one_way(planted):
    out, policy = planted("castle")
    change = one_in_three(lambda line: re.sub(r'"sensitive":("\w+")', r'"sensitive":{"ill":\1}', line))
    out.write_text("\n".join(change(out.read_text().split("\n")[:-1])) + "\n")
    assert WRITTEN in refuted(out, policy)


@pytest.mark.parametrize("kind", ["delay-free", "castle"])
@pytest.mark.parametrize("what", STREAM)
def test_lines_of_a_stream_are_written_in_one_way(planted, kind, what):
    out, policy = planted(kind)
    change, claim = STREAM[what]
    out.write_text("\n".join(change(out.read_text().split("\n")[:-1])) + "\n")
    assert claim in refuted(out, policy)


def names(lines, form):
    found = dict.fromkeys(re.findall(r'"group":"(g\w+)"', "\n".join(lines)))
    new = {name: form(at) for at, name in enumerate(found)}
    return [re.sub(r'"group":"(g\w+)"', lambda name: f'"group":"{new[name[1]]}"', line) for line in lines]


GROUPS = {
    "a note": (lambda lines: [line[:-1] + ',"note":1}' for line in lines], WRITTEN),
    "names that disclose": (lambda lines: names(lines, lambda at: f"p{at} has d3"), "group names look random"),
    "names in a row": (lambda lines: names(lines, lambda at: f"g{at:016x}"), "group names look random"),
}


@pytest.mark.parametrize("what", GROUPS)
def test_lines_with_groups_say_nothing_else(planted, what):
    out, policy = planted("delay-free")
    change, claim = GROUPS[what]
    out.write_text("\n".join(change(out.read_text().split("\n")[:-1])) + "\n")
    assert claim in refuted(out, policy)


BOOK = {
    "spaces": lambda text: text.replace(",", ", "),
    "the order of keys": lambda text: (
        json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")) + "\n"
    ),
    "a key twice": lambda text: '{"kind":"p1",' + text[1:],
}


@pytest.mark.parametrize("what", BOOK)
def test_the_codebook_of_a_stream_is_written_in_one_way(planted, what):
    out, policy = planted("castle")
    book = out.with_name(out.name + ".codebook.json")
    book.write_text(BOOK[what](book.read_text()))
    assert "every file is in its canonical form" in refuted(out, policy)


@pytest.mark.parametrize(
    "change",
    [
        lambda book: book["guarantee"].update(against="p1 has d3"),
        lambda book: book["guarantee"].update(not_covered=["p1 has d3"]),
        lambda book: book.update(policy="p1hasd3"),
        lambda book: book.update(columns=book["columns"] * 2),
        lambda book: book["columns"][0].update(role="plain"),
    ],
)
def test_the_codebook_of_a_stream_is_closed(planted, change):
    out, policy = planted("castle")
    path = out.with_name(out.name + ".codebook.json")
    book = json.loads(path.read_text())
    change(book)
    path.write_text(json.dumps(book, separators=(",", ":")) + "\n")
    assert "every entry of the stream's codebook is known and well-formed" in refuted(out, policy)


def moved(lines):
    """Other positions for the same lines."""
    return [re.sub(r'"seq":(\d+)', lambda seq: f'"seq":{(int(seq[1]) + 7) % 240}', line) for line in lines]


@pytest.mark.parametrize("kind", ["delay-free", "castle"])
def test_a_stream_with_its_input(planted, kind):
    out, policy = planted(kind)
    lines = out.read_text().split("\n")[:-1]
    out.write_text("\n".join(moved(lines)) + "\n")
    assert "every published record comes from the input" in refuted(out, policy, original=out.parent / "data.csv")


def test_values_of_castle_are_those_of_the_input(planted):
    out, policy = planted("castle")
    out.write_text(out.read_text().replace('"sensitive":"d1"', '"sensitive":"d2"'))
    assert "every sensitive value matches the input" in refuted(out, policy, original=out.parent / "data.csv")


def test_candidates_of_another_group(planted):
    out, policy = planted("delay-free")
    lines = [json.loads(line) for line in out.read_text().split("\n")[:-1]]
    groups = [line for line in lines if line["type"] == "group"]
    sets = [line["candidates"] for line in groups]
    for line, candidates in zip(groups, sets[1:] + sets[:1], strict=True):
        line["candidates"] = candidates
    out.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    claim = "every person's true value is among the values of their group"
    assert claim in refuted(out, policy, original=out.parent / "data.csv")
    assert claim not in refuted(out, policy)
