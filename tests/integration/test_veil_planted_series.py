"""Disclosures planted in a series and in a stream under the veil: each is refuted, by name, from what is published alone."""

import csv
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
import yaml

from reticent import Policy, Series, verify
from reticent.cli import main

SIZE, PERSONS = 6, 300
VALUES = [f"v{code}" for code in range(SIZE)]
DOCUMENT = {
    "version": 1,
    "person": "id",
    "columns": {"id": "identifier", "sex": "quasi", "ill": "sensitive"},
    "privacy": {"l": 3},
    "prior": {"file": "prior.csv", "link": True},
    "series": {"method": "veil"},
    "stream": {"method": "veil"},
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("parameters_digest")
    lines = (f"{sex},{value},{5 + code}\n" for sex in "fm" for code, value in enumerate(VALUES))
    (base / "prior.csv").write_text("sex,value,count\n" + "".join(lines))
    (base / "policy.yaml").write_text(yaml.safe_dump(DOCUMENT))
    rng = np.random.default_rng(1)
    people = {"id": [f"p{i}" for i in range(PERSONS)], "sex": ["fm"[i % 2] for i in range(PERSONS)]}
    rows = pa.table(people | {"ill": rng.choice(VALUES, PERSONS)})
    series = Series(base / "series.db", Policy.load(base / "policy.yaml"))
    for number in (1, 2):
        series.publish(rows, base / f"release-{number}")
    pa.csv.write_csv(rows, base / "feed.csv")
    settings = ["-p", str(base / "policy.yaml"), "--store", str(base / "feed.db"), "--to", str(base / "out.ndjson")]
    with pytest.raises(SystemExit) as ended:
        main(["stream", str(base / "feed.csv"), *settings])
    assert not ended.value.code
    return base


def refuted(base, *sources, **more):
    result = verify([str(source) for source in sources], base / "policy.yaml", **more)
    return {finding.claim for finding in result.refuted}


def altered(base, tmp_path, change):
    """Both releases, the second with other lines."""
    folder = shutil.copytree(base / "release-2", tmp_path / "release-2")
    with (folder / "data.csv").open(newline="") as file:
        head, *cells = csv.reader(file)
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([head, *change(head, cells)])
    return base / "release-1", folder


def test_good_ones_hold(base):
    assert not refuted(base, base / "release-1", base / "release-2")
    assert not refuted(base, base / "release-1", base / "release-2", store=base / "series.db")
    assert not refuted(base, base / "out.ndjson")


def test_pseudonyms_of_other_persons(base, tmp_path):
    def change(head, cells):
        at = head.index("person")
        names = np.roll([row[at] for row in cells], 1)
        return [[*row[:at], name, *row[at + 1 :]] for row, name in zip(cells, names, strict=True)]

    folders = altered(base, tmp_path, change)
    assert "every person keeps their stratum of the prior" in refuted(base, *folders)
    claim = "every person has one pseudonym, and no two persons share one"
    assert claim in refuted(base, *folders, store=base / "series.db")


def test_pseudonyms_that_tell(base, tmp_path):
    folders = altered(
        base,
        tmp_path,
        lambda head, cells: [
            [*row[: head.index("person")], "p1 has v3", *row[head.index("person") + 1 :]] for row in cells
        ],
    )
    assert "pseudonyms are sixteen hexadecimal digits" in refuted(base, *folders)


def test_a_person_twice(base, tmp_path):
    folders = altered(base, tmp_path, lambda _, cells: [*cells[:-1], cells[0]])
    assert "a release of a series has each person once" in refuted(base, *folders)


def test_releases_in_another_order(base):
    assert refuted(base, base / "release-2", base / "release-1")


LINES = {
    "an object in a field": lambda line: line["quasi"].update(sex={"p1": "v3"}),
    "a pseudonym that tells": lambda line: line.update(person="p1 has v3"),
}


@pytest.mark.parametrize("what", LINES)
def test_lines_of_a_stream(base, tmp_path, what):
    lines = [json.loads(line) for line in (base / "out.ndjson").read_text().splitlines()]
    for line in lines:
        LINES[what](line)
    (tmp_path / "out.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shutil.copy(base / "out.ndjson.codebook.json", tmp_path)
    assert "every line is a record with the documented keys only" in refuted(base, tmp_path / "out.ndjson")


def test_a_key_that_stands_twice(base, tmp_path):
    text = (base / "out.ndjson").read_text().replace('"type"', '"stratum":99,"type"')
    (tmp_path / "out.ndjson").write_text(text)
    claim = "every line is a group, a tuple, a record or a codebook as documented"
    assert claim in refuted(base, tmp_path / "out.ndjson")


@pytest.mark.parametrize(
    "change", [lambda book: book.update(p1="v3"), lambda book: book["guarantee"].update(words=["p1"])]
)
def test_the_codebook_of_a_stream(base, tmp_path, change):
    book = json.loads((base / "out.ndjson.codebook.json").read_text())
    change(book)
    shutil.copy(base / "out.ndjson", tmp_path)
    (tmp_path / "out.ndjson.codebook.json").write_text(json.dumps(book))
    assert "every entry of the stream's codebook is known and well-formed" in refuted(base, tmp_path / "out.ndjson")
