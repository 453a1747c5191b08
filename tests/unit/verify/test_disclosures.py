"""Disclosures planted in good releases: each is refuted, by name."""

from __future__ import annotations

import hashlib
import json
import shutil
import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from reticent import anonymize, verify
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.value_variants import canonical_form
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.release import RecordCounts
from reticent.verify import verify as verify_release
from reticent.verify.original.persons import Input
from reticent.verify.variants import canonical_text

COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "sex": "quasi",
    "ill": "sensitive",
}


def policy(method="anatomy", **privacy):
    document = {"version": 1, "person": "id", "columns": COLUMNS, "table": {"method": method}}
    return Policy.from_dict(document | {"privacy": privacy or {"l": 3}})


def people(n=300):
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "ill": [f"d{i}" for i in rng.integers(0, 9, n)],
        }
    )


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def release(table):
    made = anonymize(table, policy(), seed=1)
    assert verify(made, policy()).holds
    assert verify(made, policy(), original=table).holds
    return made


def refuted(release, rules=None, **more):
    result = verify(release, rules or policy(), **more)
    return {finding.claim: finding.where for finding in result.refuted}


def value_of(release, table):
    """A person's true value by row of the first table: ages and sexes of the input decide, as an attacker with access to the input knows."""
    values = {}
    for age, sex, ill in zip(*(table[name].to_pylist() for name in ("age", "sex", "ill")), strict=True):
        values.setdefault((age, sex), []).append(ill)
    qit = release.tables["qit"]
    return [values[age, sex][0] for age, sex in zip(qit["age"].to_pylist(), qit["sex"].to_pylist(), strict=True)]


def test_rows_in_the_order_of_the_values_are_refuted(release, table):
    qit = release.tables["qit"]
    true_values = value_of(release, table)
    order = sorted(range(qit.num_rows), key=lambda row: (qit["group"][row].as_py(), true_values[row]))
    planted = replace(release, tables={**release.tables, "qit": qit.take(pa.array(order))})
    assert "rows of 'qit' are sorted by group and text" in refuted(planted)


def test_group_numbers_sorted_by_a_members_value_are_refuted(release):
    qit, st = release.tables["qit"], release.tables["st"]
    least = {}
    for group, value in zip(st["group"].to_pylist(), st["value"].to_pylist(), strict=True):
        least[group] = min(value, least.get(group, value))
    number = {group: place for place, group in enumerate(sorted(least, key=lambda group: (least[group], group)))}
    planted = {}
    for name, part in (("qit", qit), ("st", st)):
        renamed = part.set_column(0, "group", pa.array([number[group] for group in part["group"].to_pylist()]))
        planted[name] = renamed.sort_by([(column, "ascending") for column in renamed.column_names])
    assert "groups are numbered in the order of their rows" in refuted(replace(release, tables=planted))


def test_rows_of_the_value_table_out_of_order_are_refuted(release):
    st = release.tables["st"]
    planted = {**release.tables, "st": st.take(pa.array(range(st.num_rows - 1, -1, -1)))}
    assert "rows of 'st' are sorted by group and value" in refuted(replace(release, tables=planted))


@pytest.mark.parametrize("method", ["anatomy", "optimal"])
def test_cells_in_explain_are_refuted(method, table):
    rules = policy(method) if method == "anatomy" else policy(method, k=5)
    made = anonymize(table, rules, seed=1)
    cells = table.slice(0, 50).to_pylist()
    for key, value in (
        ("rows", cells),
        ("suppressed", cells),
        ("nodes", {"checked": cells}),
        ("loss", "Ann, 1980, HIV"),
    ):
        planted = replace(made, explain={**made.explain, key: value})
        assert key in refuted(planted, rules)["explain contains only counts and settings"]
    planted = replace(made, metrics={**made.metrics, "ncp": cells})
    assert "ncp" in refuted(planted, rules)["metrics contains only numbers"]


def test_an_input_file_left_in_the_folder_is_refuted(release, table, tmp_path):
    folder = release.to_dir(tmp_path / "out")
    assert verify(folder, policy()).holds
    pyarrow.csv.write_csv(table, folder / "hospital.csv")
    assert refuted(folder)["the folder contains only files that the manifest lists"] == "hospital.csv"
    (folder / "hospital.csv").unlink()
    (folder / ".notes").mkdir()
    assert ".notes" in refuted(folder)["the folder contains only files that the manifest lists"]
    shutil.rmtree(folder / ".notes")
    manifest = (folder / "release.json").read_text()
    (folder / "release.json").write_text(manifest.replace('"seeded"', '"remarks": "Ann has d1",\n  "seeded"'))
    assert refuted(folder)["the manifest has only known entries"] == "remarks"


def test_values_of_another_group_are_refuted_with_the_original(release, table):
    st = release.tables["st"]
    groups = st["group"].to_numpy()
    moved = st.set_column(0, "group", pa.array((groups + 1) % (groups.max() + 1)))
    moved = moved.sort_by([("group", "ascending"), ("value", "ascending")])
    planted = replace(release, tables={**release.tables, "st": moved})
    claims = refuted(planted, original=table)
    assert {
        "every published record comes from the input",
        "every person's true value is among the values of their group",
    } & set(claims)


@pytest.mark.parametrize("method", ["anatomy", "optimal", "mondrian", "local"])
def test_lost_persons_are_refuted_whatever_the_counts_say(method, table):
    rules = policy(method) if method == "anatomy" else policy(method, k=5)
    made = anonymize(table.slice(90), rules, seed=1)
    assert made.records == RecordCounts(210, 210, 0, 0)
    assert "the manifest states the rows of the input" in refuted(made, rules, original=table)
    hidden = replace(made, records=RecordCounts(300, 210, 0, 90))
    assert "suppressed rows are within the policy's limit" in refuted(hidden, rules, original=table)


def test_strangers_among_the_published_are_refuted(table):
    rules = policy("optimal", k=5)
    made = anonymize(table.set_column(3, "ill", pa.array(["d1", "d2"] * 150)), rules, seed=1)
    assert "every published record comes from the input" in refuted(made, rules, original=table)


@pytest.mark.parametrize(("column", "cell"), [("sex", "x"), ("ill", "d99"), ("age", "[0, 5)")])
@pytest.mark.parametrize("row", [0, 150, -1])
def test_one_cell_that_is_not_the_inputs_is_refuted(table, column, cell, row):
    rules = policy("optimal", k=3)
    engine = publisher(rules, "table", "optimal", rng=Rng.from_seed(3))
    engine.push(table)
    (made,) = engine.close()
    source, data = Input(table, engine.original().source_rows), made.tables["data"]
    assert verify_release([made], rules, kind="table", original=source).holds
    cells = data[column].to_pylist()
    cells[row] = cell
    changed = data.set_column(data.column_names.index(column), column, pa.array(cells, pa.string()))
    result = verify_release([replace(made, tables={"data": changed})], rules, kind="table", original=source)
    assert "every published record comes from the input" in {finding.claim for finding in result.refuted}


def test_a_person_published_twice_in_the_place_of_another_is_refuted(table):
    rules = policy("optimal", k=5)
    engine = publisher(rules, "table", "optimal", rng=Rng.from_seed(1))
    engine.push(table)
    (made,) = engine.close()
    places = engine.original().source_rows
    assert verify_release(made, rules, original=Input(table, places)).holds
    rows = np.arange(len(places))
    rows[5] = rows[4]
    twice = replace(made, tables={"data": made.tables["data"].take(pa.array(rows))})
    result = verify_release(twice, rules, original=Input(table, places[rows]))
    assert "every published record comes from the input" in {finding.claim for finding in result.refuted}


VARIANTS = [
    "HIV",
    "HIV ",
    "hiv",
    "HIV\u00a0",
    "H\u200bIV",
    unicodedata.normalize("NFKC", "HIV").translate({ord(letter): ord(letter) + 0xFEE0 for letter in "HIV"}),
    " hiv",
    "Hiv",
    "hiV",
    "h\u00adiv",
]


def test_ten_variants_are_one_value(table):
    assert {canonical_text(word) for word in VARIANTS} == {canonical_form(word) for word in VARIANTS} == {"hiv"}
    assert canonical_text(None) == canonical_text("") == canonical_form(None) == canonical_form("\u200b ") == ""
    assert canonical_text("e\u0301") == canonical_text("\u00e9") == canonical_form("E\u0301")
    ills = pa.array([VARIANTS[i % 10] for i in range(300)])
    sick = table.set_column(3, "ill", ills)
    for method, privacy in (("anatomy", {"l": 5}), ("optimal", {"k": 5, "l": 5})):
        with pytest.raises(DataError, match="9 values in 270 records are variants") as error:
            anonymize(sick, policy(method, **privacy), seed=1)
        assert "normalize: true" in error.value.hint
        assert "HIV" not in str(error.value)


CODES = ["E11.9", "E119", "e11.9", "I10", "J45.0", "J450"]


def test_a_code_with_and_without_its_dot_is_one_value(table):
    assert (
        {canonical_text(word) for word in CODES} == {canonical_form(word) for word in CODES} == {"e119", "i10", "j450"}
    )
    assert canonical_text("25.0") != canonical_text("250")
    assert canonical_form("25.0") != canonical_form("250")
    sick = table.set_column(3, "ill", pa.array([CODES[i % 6] for i in range(300)]))
    with pytest.raises(DataError, match="3 values in 150 records are variants"):
        anonymize(sick, policy("optimal", k=5, l=3), seed=1)
    document = policy("optimal", k=5, l=3).to_dict()
    document["columns"]["ill"] = {"role": "sensitive", "normalize": True, "hierarchy": {"icd10": True}}
    rules = Policy.from_dict(document)
    made = anonymize(sick, rules, seed=1)
    assert len(set(made.tables["data"]["ill"].to_pylist())) == 3
    assert verify(made, rules, original=sick).holds
    data = made.tables["data"]
    dotted = [ill.replace(".", "") if i % 2 else ill for i, ill in enumerate(data["ill"].to_pylist())]
    planted = replace(made, tables={"data": data.set_column(data.column_names.index("ill"), "ill", pa.array(dotted))})
    assert refuted(planted, rules)["no two values are variants of one value"] == "column 'ill'"


@pytest.mark.parametrize(
    "word",
    ["HIV\x01", "HIV\x7f", "HIV\ufe0f", "HI\u034fV", "HIV\u2800", "HIV\u3164", "\u041dIV", "\u0397IV", "H\u0406V"],
)
def test_invisible_characters_make_no_other_value(word):
    assert canonical_text(word) == canonical_form(word) == "hiv"


def test_words_of_other_scripts_and_units_stay_apart():
    words = ["5 \u00b5g", "5 mg", "\u03b1-thalassaemia", "a-thalassaemia", "\u043d\u043e\u0441", "hoc"]
    assert len({canonical_text(word) for word in words}) == len({canonical_form(word) for word in words}) == 6
    assert (
        canonical_text("\u041d\u041e\u0421")
        == canonical_text("\u043d\u043e\u0441")
        == canonical_form("\u041d\u043e\u0441")
    )


def test_normalize_merges_variants(table):
    ills = pa.array([f"{'D' if i % 2 else 'd'}{i % 7}{' ' * (i % 3)}" for i in range(300)])
    document = policy("optimal", k=5, l=3).to_dict()
    document["columns"]["ill"] = {"role": "sensitive", "normalize": True}
    rules = Policy.from_dict(document)
    sick = table.set_column(3, "ill", ills)
    made = anonymize(sick, rules, seed=1)
    assert len(set(made.tables["data"]["ill"].to_pylist())) == 7
    assert verify(made, rules, original=sick).holds


def test_the_verifier_refutes_variants_in_both_shapes(release, table):
    rules = policy("optimal", k=5)
    made = anonymize(table, rules, seed=1)
    data = made.tables["data"]
    ills = pa.array([f"{ill} " if i % 2 else ill for i, ill in enumerate(data["ill"].to_pylist())])
    planted = replace(made, tables={"data": data.set_column(data.column_names.index("ill"), "ill", ills)})
    assert refuted(planted, rules)["no two values are variants of one value"] == "column 'ill'"
    st = release.tables["st"]
    words = pa.array([f"{value}\u200b" if i % 2 else value for i, value in enumerate(st["value"].to_pylist())])
    planted = replace(release, tables={**release.tables, "st": st.set_column(1, "value", words)})
    assert refuted(planted)["no two values are variants of one value"] == "table 'st'"


def test_t_is_not_shown_by_the_histogram_of_the_input(table):
    rules = policy("optimal", k=5, t=0.3, suppression=0.1)
    made = anonymize(table, rules, seed=1)
    assert "reference" not in made.explain
    assert verify(made, rules).holds
    planted = replace(made, explain={**made.explain, "reference": {"ill": [["d1", 40]]}})
    assert "reference" in refuted(planted, rules)["explain contains only counts and settings"]


def test_plain_columns_are_measured_and_listed(table):
    from reticent.policy.check import check

    document = policy("optimal", k=5).to_dict()
    document["columns"]["labs"] = "plain"
    rules = Policy.from_dict(document)
    made = anonymize(table.append_column("labs", pa.array(range(300))), rules, seed=1)
    assert any("100% of the published rows are unique" in note for note in verify(made, rules).notes)
    assert any("labs" in note and "released unchanged and not protected" in note for note in check(rules))


def test_the_metadata_files_of_generalized_tables_and_of_anatomy_have_a_closed_list_of_entries(table, tmp_path):
    for method, name, privacy in (("local", "data", {"k": 3}), ("anatomy", "qit", {"l": 3})):
        rules = policy(method, **privacy)
        folder = anonymize(table, rules, seed=1).to_dir(tmp_path / method)
        assert verify(folder, rules).holds
        assert verify(folder, rules, original=table).holds
        manifest = json.loads((folder / "release.json").read_text())
        pa.csv.write_csv(table, folder / "input.csv")
        manifest["files"]["input.csv"] = hashlib.sha256((folder / "input.csv").read_bytes()).hexdigest()
        (folder / "release.json").write_text(json.dumps(manifest | {"kind": "series"}))
        found = refuted(folder, rules)
        assert found["the folder has only files of its shape, each once"] == "input.csv"
        assert found["every entry of the manifest is well-formed"] == "method"
        lines = (folder / f"{name}.csv").read_text().splitlines()
        text = "\n".join([f"{lines[0]},age", *(f"{line},p1" for line in lines[1:])])
        (folder / f"{name}.csv").write_text(text + "\n")
        assert "no column name occurs twice in a table" in refuted(folder, rules)


def test_further_records_are_suppressed_only_if_the_policy_takes_one_record_per_person(table):
    rules = policy("local", k=3, suppression=0.01)
    made = anonymize(table, rules, seed=1)
    kept = made.tables["data"].num_rows - 100
    forged = replace(
        made,
        tables={"data": made.tables["data"].slice(0, kept)},
        records=RecordCounts(made.records.input, kept, 0, made.records.input - kept),
        explain={**made.explain, "suppressed_further_records": 100},
    )
    assert "suppressed rows are within the policy's limit" in refuted(forged, rules)


def test_categories_are_read_as_their_values(table):
    ills = pa.array([VARIANTS[i % 10] for i in range(300)]).dictionary_encode()
    with pytest.raises(DataError, match="9 values in 270 records are variants"):
        anonymize(table.set_column(3, "ill", ills), policy("optimal", k=5, l=5), seed=1)
