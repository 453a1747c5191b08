"""A policy file: what it means, and what is said when it is wrong."""

import json
import math

import pytest
import yaml

from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.check import check
from reticent.policy.schema import schema

GOOD = """
version: 1
person: patient_id
columns:
  patient_id: identifier
  age: {role: quasi, hierarchy: {intervals: [5, 10, 20, 40]}}
  sex: quasi
  zip: {role: quasi, hierarchy: {prefix: 5}}
  diagnosis: sensitive
  ward: plain
privacy: {k: 5, l: {recursive: [4, 3]}, t: 0.2, suppression: 0.02}
table: {method: optimal, loss: loss}
evolving: {method: indexed, l: 10}
series: {method: "m-distinct*", max_risk: 0.25}
stream: {method: veil, l: 10}
"""


def write(tmp_path, text, name="policy.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_reads_the_documented_form(tmp_path):
    policy = Policy.load(write(tmp_path, GOOD))
    assert policy.quasi == ("age", "sex", "zip")
    assert policy.sensitive == ("diagnosis",)
    assert policy.plain == ("ward",)
    assert policy.identifiers == ("patient_id",)
    assert policy.privacy.l.to_plain() == {"recursive": [4.0, 3]}
    assert policy.privacy.t.to_plain() == {"equal": 0.2}


def test_yaml_json_and_toml_mean_the_same(tmp_path):
    data = yaml.safe_load(GOOD)
    toml = """
version = 1
person = "patient_id"
[columns]
patient_id = "identifier"
age = {role = "quasi", hierarchy = {intervals = [5, 10, 20, 40]}}
sex = "quasi"
zip = {role = "quasi", hierarchy = {prefix = 5}}
diagnosis = "sensitive"
ward = "plain"
[privacy]
k = 5
l = {recursive = [4, 3]}
t = 0.2
suppression = 0.02
[table]
method = "optimal"
[evolving]
method = "indexed"
l = 10
[stream]
l = 10
[series]
method = "m-distinct*"
max_risk = 0.25
"""
    hashes = {
        Policy.load(write(tmp_path, GOOD)).hash,
        Policy.load(write(tmp_path, json.dumps(data), "policy.json")).hash,
        Policy.load(write(tmp_path, toml, "policy.toml")).hash,
        Policy.from_dict(Policy.from_dict(data).to_dict()).hash,
    }
    assert len(hashes) == 1


def test_the_hash_follows_the_meaning(tmp_path):
    first = Policy.load(write(tmp_path, GOOD))
    assert Policy.load(write(tmp_path, GOOD + "\n# a comment\n")).hash == first.hash
    assert Policy.load(write(tmp_path, GOOD.replace("k: 5", "k: 6"))).hash != first.hash


def test_the_hash_covers_the_files(tmp_path):
    tree = tmp_path / "tree.csv"
    tree.write_text("a;x;*\nb;x;*\n")
    path = write(tmp_path, "version: 1\ncolumns: {c: {role: quasi, hierarchy: {file: tree.csv}}}\n")
    before = Policy.load(path).hash
    tree.write_text("a;x;*\nb;y;*\n")
    assert Policy.load(path).hash != before


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("sex: quasi", "sex: quasy", 7, ["columns.sex", "did you mean 'quasi'"]),
        ("sex: quasi", "sex:", 7, ["columns.sex", "no role", "quasi"]),
        ("hierarchy: {prefix", "hierarchi: {prefix", 8, ["columns.zip", "did you mean 'hierarchy'"]),
        ("k: 5", "k: 0", 11, ["privacy.k", "at least 2"]),
        ("k: 5", "k: 2.5", 11, ["privacy.k", "whole number"]),
        ("t: 0.2", "t: 1.5", 11, ["privacy.t", "at most 1"]),
        ("t: 0.2", "t: {ordred: 0.2}", 11, ["privacy.t", "did you mean 'ordered'"]),
        ("recursive: [4, 3]", "recursive: 3", 11, ["privacy.l", "recursive: [4, 3]"]),
        ("suppression: 0.02", "suppression: 2", 11, ["privacy.suppression", "at most 1"]),
        ("method: optimal", "method: optimum", 12, ["table.method", "did you mean 'optimal'"]),
        ("table:", "tables:", 12, ["did you mean 'table'"]),
        ("person: patient_id", "person: patientid", 2, ["person", "did you mean 'patient_id'"]),
        ("person: patient_id", "person: ward", 2, ["person", "identifier"]),
        ("intervals: [5, 10, 20, 40]", "intervals: [0]", 6, ["columns.age", "above 0"]),
        ("intervals: [5, 10, 20, 40]", "intervals: [[5, 3]]", 6, ["columns.age", "increase"]),
        ("{prefix: 5}", "{prefix: 5, file: x.csv}", 8, ["columns.zip", "exactly one"]),
        ("{prefix: 5}", "x.csv", 8, ["columns.zip", "{file: tree.csv}"]),
        ("version: 1", "version: 2", 2, ["version"]),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, old, new, line, words):
    assert old in GOOD
    with pytest.raises(PolicyError) as caught:
        Policy.load(write(tmp_path, GOOD.replace(old, new, 1)))
    said = str(caught.value)
    assert f"line {line}" in said
    for word in words:
        assert word in said, said


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "version: 1", "\x00", "version: 1\ncolumns: {}", "&a [*a]"])
def test_what_is_no_policy_is_refused(tmp_path, text):
    with pytest.raises(PolicyError):
        Policy.load(write(tmp_path, text))


def test_columns_must_be_those_of_the_data():
    policy = Policy.from_dict({"version": 1, "columns": {"age": "quasi", "ill": "sensitive"}})
    with pytest.raises(PolicyError, match="did you mean 'agge'"):
        policy.check_columns(["agge", "ill"])
    with pytest.raises(PolicyError, match="without a role"):
        policy.check_columns(["age", "ill", "name"])


def test_check_refuses_what_cannot_hold(tmp_path):
    (tmp_path / "ill.csv").write_text("flu;*\ncold;*\n")
    base = {"version": 1, "columns": {"age": "quasi", "ill": {"role": "sensitive", "hierarchy": {"file": "ill.csv"}}}}
    with pytest.raises(PolicyError, match="at most 2"):
        check(Policy.from_dict(base | {"privacy": {"l": 3}}, base=tmp_path))
    check(Policy.from_dict(base | {"privacy": {"l": 2}}, base=tmp_path))
    lost = {"version": 1, "columns": {"age": {"role": "quasi", "hierarchy": {"file": "no.csv"}}}}
    with pytest.raises(PolicyError, match=r"no\.csv"):
        check(Policy.from_dict(lost, base=tmp_path))
    with pytest.raises(PolicyError, match="sensitive"):
        check(Policy.from_dict({"version": 1, "columns": {"age": "quasi"}, "privacy": {"l": 2}}))
    with pytest.raises(PolicyError, match="hierarchical"):
        check(
            Policy.from_dict(
                {"version": 1, "columns": {"a": "quasi", "b": "sensitive"}, "privacy": {"t": {"hierarchical": 0.1}}}
            )
        )


def test_schema_is_json_and_names_the_roles():
    text = json.dumps(schema())
    for word in ("identifier", "quasi", "sensitive", "plain", "suppression", "hierarchical"):
        assert word in text


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("evolving: {strategy: enc}", "method"),
        ("series: {model: m-distinct}", "method"),
        ("stream: {model: castle}", "method"),
    ],
)
def test_words_of_earlier_versions_are_refused_with_the_new_word(tmp_path, written, word):
    text = "version: 1\ncolumns: {age: quasi, ill: sensitive}\n" + written + "\n"
    with pytest.raises(PolicyError, match=f"is now called '{word}'"):
        Policy.load(write(tmp_path, text))


@pytest.mark.parametrize("section", ["evolving: {l: 2}", "stream: {l: 2}", "series: {m: 2}"])
def test_a_section_may_be_stricter_than_privacy_and_never_laxer(tmp_path, section):
    head = "version: 1\ncolumns: {age: quasi, ill: sensitive}\nprivacy: {l: 8}\n"
    with pytest.raises(PolicyError, match="less than l = 8"):
        Policy.load(write(tmp_path, head + section))
    stricter = Policy.load(write(tmp_path, head + section.replace("2", "9")))
    assert 9 in {stricter.l_of("evolving"), stricter.l_of("stream"), stricter.m}
    same = Policy.load(write(tmp_path, head))
    assert {same.l_of("evolving"), same.l_of("stream"), same.m} == {8}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"table": {"method": "local"}}, "table: local; keeps k, l and t of privacy"),
        (
            {"evolving": {"method": "enc"}},
            "evolving: enc, l = 3; keeps l of privacy; k and t of privacy are not kept by evolving enc",
        ),
        (
            {"series": {"method": "m-invariance"}},
            "series: m-invariance, m = 4, no risk above 0.5; keeps l of privacy; k and t of privacy are not kept by series m-invariance",
        ),
        (
            {"stream": {"method": "delay-free"}},
            "stream: delay-free, l = 3; keeps l of privacy; k and t of privacy are not kept by stream delay-free",
        ),
        (
            {"series": {"method": "veil"}},
            "series: veil, l = 3, no prior (not measured), without a kernel: a person's later values that differ are omitted; keeps l of privacy; k and t of privacy are not kept by series veil",
        ),
        (
            {"stream": {"method": "castle"}},
            "stream: castle; keeps k and l of privacy; t of privacy is not kept by stream castle",
        ),
    ],
)
def test_every_section_says_what_it_keeps_of_privacy(section, words):
    columns = {"age": "quasi", "diagnosis": "sensitive"}
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 5, "l": 3, "t": 0.2}} | section)
    notes = check(policy)
    assert words in notes
    kind = next(iter(section))
    demands = {note[0]: note for note in notes if note[1:4] == " = "}
    assert all(": " in note for note in demands.values())
    for name, note in demands.items():
        assert note.endswith(f"NOT kept by the releases of {kind}") == (name not in getattr(policy, kind).keeps)


def test_a_person_is_a_column_or_says_more():
    columns = {"id": "identifier", "visit": "identifier", "ill": "sensitive"}
    short = Policy.from_dict({"version": 1, "person": "id", "columns": columns})
    long = Policy.from_dict({"version": 1, "person": {"column": "id", "records": "all"}, "columns": columns})
    assert (short.person, short.hash, short.to_dict()["person"]) == ("id", long.hash, "id")
    spoken = {"column": "id", "records": "first", "events": "visit"}
    more = Policy.from_dict({"version": 1, "person": spoken, "columns": columns})
    assert more.to_dict()["person"] == spoken
    assert (more.person, more.hash != short.hash) == ("id", True)


@pytest.mark.parametrize("events", ["vist", "ill"])
def test_the_order_of_records_is_a_column_that_is_not_sensitive(events):
    columns = {"id": "identifier", "visit": "identifier", "ill": "sensitive"}
    with pytest.raises(PolicyError, match=r"person\.events"):
        Policy.from_dict({"version": 1, "person": {"column": "id", "events": events}, "columns": columns})


@pytest.mark.parametrize("form", ["yaml", "json", "toml"])
def test_a_word_written_twice_is_refused_with_its_line(tmp_path, form):
    text = {
        "yaml": "version: 1\ncolumns:\n  ill: sensitive\n  ill: plain\n",
        "json": '{"version": 1,\n "columns": {"ill": "sensitive",\n "ill": "plain"}}',
        "toml": 'version = 1\n[columns]\nill = "sensitive"\nill = "plain"\n',
    }[form]
    (tmp_path / f"p.{form}").write_text(text)
    with pytest.raises(PolicyError, match=r"line [34]"):
        Policy.load(tmp_path / f"p.{form}")


def test_aliases_are_refused_before_they_unfold(tmp_path):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 10)
    )
    (tmp_path / "p.yaml").write_text(bomb)
    with pytest.raises(PolicyError, match="line 2: aliases"):
        Policy.load(tmp_path / "p.yaml")


@pytest.mark.parametrize(("word", "number"), [("k", 10**20), ("k", 10**10), ("l", 10**20), ("l", 1e300)])
def test_absurd_numbers_are_refused(word, number):
    with pytest.raises(PolicyError, match="at most"):
        Policy.from_dict({"version": 1, "columns": {"ill": "sensitive"}, "privacy": {word: number}})


@pytest.mark.parametrize(
    "privacy",
    [
        *({"k": k} for k in (0, -1, 2.5, True)),
        *({"l": l} for l in (0, {"entropy": 0.5}, {"entropy": math.nan}, {"recursive": [0, 3]}, {"recursive": [2, 0]})),
        *({"l": {"frequency": math.inf}}, {"t": 1.5}, {"t": {"ordered": -0.1}}),
    ],
    ids=str,
)
def test_impossible_numbers_are_refused(privacy):
    with pytest.raises(PolicyError):
        Policy.from_dict({"version": 1, "columns": {"ill": "sensitive"}, "privacy": privacy})


@pytest.mark.parametrize("section", ["evolving", "series", "stream"])
def test_a_removed_method_is_refused(tmp_path, section):
    text = GOOD.partition("evolving:")[0] + f"{section}: {{method: sealed}}\n"
    with pytest.raises(PolicyError, match=r"line 13: .*'sealed' is unknown"):
        Policy.load(write(tmp_path, text))


def test_settings_of_the_method_that_went_are_not_known(tmp_path):
    with pytest.raises(PolicyError, match="'epochs' is unknown"):
        Policy.load(write(tmp_path, GOOD.replace("stream: {method: veil, l: 10}", "stream: {epochs: fixed}")))
