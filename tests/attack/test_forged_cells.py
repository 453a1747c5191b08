"""Forged releases, verified with their input: the order of lines, or which cells are coarser, follows the true values."""

import hashlib
import json
import re

import numpy as np
import pyarrow as pa
import pytest

from reticent import Policy, anonymize, verify
from reticent.cli import main

SIZE, L, VALUES = 400, 3, 8
NAMES = np.array([f"d{code}" for code in range(VALUES)])


@pytest.fixture(params=["veil", "anatomy"])
def honest(request, tmp_path):
    """A release, its policy and its input; every line has a cost of its own, by which its person is known."""
    rng = np.random.default_rng(5)
    counts = [
        f"{sex},{name},{10 + at * factor}\n" for sex, factor in (("f", 1), ("m", 2)) for at, name in enumerate(NAMES)
    ]
    (tmp_path / "prior.csv").write_text("sex,value,count\n" + "".join(counts))
    columns = {"id": "identifier", "sex": "quasi", "age": "quasi", "cost": "plain", "ill": "sensitive"}
    if request.param == "veil":
        columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [10, 20]}, "level": 1}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": L}, "table": {"method": request.param}}
    prior = {"prior": {"file": "prior.csv", "by": ["sex"]}} if request.param == "veil" else {}
    policy = Policy.from_dict(rules | prior, base=tmp_path)
    fields = {"sex": rng.choice(["f", "m"], SIZE), "age": rng.integers(20, 80, SIZE), "cost": rng.permutation(SIZE)}
    rows = pa.table({"id": [f"p{i}" for i in range(SIZE)], **fields, "ill": rng.choice(NAMES, SIZE)})
    folder = anonymize(rows, policy, store=tmp_path / "store.db").to_dir(tmp_path / "release")
    assert verify(folder, policy, original=rows).holds
    return folder, policy, rows


def forged(honest, change):
    """What the verifier says, given the input, when lines were changed and the digest adapted; cells as they are in the file."""
    folder, policy, rows = honest
    file = next(path for path in (folder / "data.csv", folder / "qit.csv") if path.exists())
    head, *lines = [re.findall(r'"[^"]*"|[^,]+', line) for line in file.read_text().splitlines()]
    true_values = dict(zip(map(str, rows.column("cost").to_pylist()), rows.column("ill").to_pylist(), strict=True))
    forged_lines = change(head, lines, [true_values[line[head.index('"cost"')]] for line in lines])
    manifest, before = folder / "release.json", hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text("".join(",".join(cells) + "\n" for cells in [head, *forged_lines]))
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(file.read_bytes()).hexdigest()))
    return verify(folder, policy, original=rows)


def test_nothing_changed_holds(honest):
    assert forged(honest, lambda _, lines, __: lines).holds


def test_a_cell_that_is_coarser_for_one_value_is_refuted(honest):
    def starred(head, lines, true_values):
        at = head.index('"sex"')
        cells = ['"*"' if value == "d3" else line[at] for line, value in zip(lines, true_values, strict=True)]
        return [[*line[:at], cell, *line[at + 1 :]] for line, cell in zip(lines, cells, strict=True)]

    assert "every published record comes from the input" in [one.claim for one in forged(honest, starred).refuted]


@pytest.mark.parametrize("honest", ["veil"], indirect=True)
@pytest.mark.parametrize("sign", [lambda value: value != "d3", lambda value: int(value[1]) % 2], ids=["value", "bit"])
def test_lines_sorted_by_their_true_values_are_refuted(honest, sign):
    def ordered(_, lines, true_values):
        signs = [sign(value) for value in true_values]
        return [lines[at] for at in sorted(range(len(lines)), key=signs.__getitem__)]

    assert "the order of records does not follow their true values" in [
        one.claim for one in forged(honest, ordered).refuted
    ]


def starred(line):
    line["quasi"]["sex"] = "*"


def coarser(line):
    line["quasi"]["age"] = "[20, 40)"


def in_another_stratum(line):
    line["stratum"] = 2


def with_a_point(line):
    line["plain"]["cost"] = float(line["plain"]["cost"])


CHANGES = [("veil", change) for change in (None, starred, coarser, in_another_stratum, with_a_point)]
CHANGES += [("delay-free", change) for change in (None, starred, with_a_point)]  # it has no strata and no levels


@pytest.mark.parametrize(("method", "change"), CHANGES)
def test_lines_of_a_stream_that_differ_by_their_true_values_are_refuted(tmp_path, method, change):
    rng = np.random.default_rng(6)
    ills, columns = (
        rng.choice(NAMES, SIZE).tolist(),
        {"id": "identifier", "sex": "quasi", "cost": "plain", "ill": "sensitive"},
    )
    age = {"role": "quasi", "hierarchy": {"intervals": [10, 20]}, "level": int(method == "veil")}
    by = "sex," if method == "veil" else ""
    cells = ["f,", "m,"] if by else [""]
    counts = "".join(f"{cell}{name},10\n" for cell in cells for name in NAMES)
    (tmp_path / "prior.csv").write_text(f"{by}value,count\n{counts}")
    rules = {"version": 1, "person": "id", "columns": {**columns, "age": age}, "privacy": {"l": L}}
    rules |= {"prior": {"file": "prior.csv"}, "stream": {"method": method}}
    (tmp_path / "policy.yaml").write_text(json.dumps(rules))
    records = [
        {"id": f"p{i}", "sex": "fm"[i % 2], "cost": i, "ill": ill, "age": 20 + i % 20} for i, ill in enumerate(ills)
    ]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    sink = tmp_path / "out.ndjson"
    places = [str(tmp_path / name) for name in ("in.ndjson", "policy.yaml", "store.db")]
    with pytest.raises(SystemExit) as ended:
        main(["stream", places[0], "-p", places[1], "--store", places[2], "--to", str(sink)])
    assert not ended.value.code
    lines = [json.loads(line) for line in sink.read_text().splitlines()]
    for line in lines:
        if change is not None and line["type"] != "group" and ills[line["seq"]] == "d3":
            change(line)
    sink.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    assert verify(sink, places[1], original=places[0]).holds == (change is None)


@pytest.mark.parametrize("changed", [None, "stratum", "plain"])
def test_later_lines_of_a_person_that_differ_by_their_true_values_are_refuted(tmp_path, changed):
    counts = "".join(f"{sex},{name},{10 + at}\n" for sex in "fm" for at, name in enumerate(NAMES))
    (tmp_path / "prior.csv").write_text(f"sex,value,count\n{counts}")
    columns = {"id": "identifier", "sex": "quasi", "cost": "plain", "ill": "sensitive"}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": L}, "stream": {"method": "veil"}}
    (tmp_path / "policy.yaml").write_text(json.dumps(rules | {"prior": {"file": "prior.csv", "by": ["sex"]}}))
    records = [
        {"id": f"p{i % 40}", "sex": "fm"[i % 3 // 2], "cost": i, "ill": f"d{i % 40 % VALUES}"} for i in range(120)
    ]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    places = [str(tmp_path / name) for name in ("in.ndjson", "policy.yaml", "store.db", "out.ndjson")]
    with pytest.raises(SystemExit) as ended:
        main(["stream", places[0], "-p", places[1], "--store", places[2], "--to", places[3]])
    assert not ended.value.code
    lines = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    line = next(line for line in lines if line["event"] > 0)
    if changed == "stratum":
        line["stratum"] = 1 - line["stratum"]
    elif changed == "plain":
        line["plain"] = "whatever"
    (tmp_path / "out.ndjson").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
    result = verify(places[3], places[1], original=places[0])
    assert result.holds is (changed is None), result
    claims = [one.claim for one in result.refuted]
    assert changed != "stratum" or "later events have the stratum of the first event" in claims
