"""Disclosive columns: the name of an illness next to its candidates or its group, or a flag of one illness."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pytest
import yaml

from reticent import EvolvingTable, Policy, Series, Stream, anonymize
from reticent.cli import main
from reticent.errors import GuaranteeError

VALUES = [f"v{i:02d}" for i in range(12)]


def rules(base, role="plain", *, by=False):
    """A veil of l = 4 over twelve values; `by`: the prior is by the disclosive column."""
    base.mkdir(exist_ok=True)
    lines = [f"{words(value)},{value},9" for value in VALUES] if by else [f"{value},9" for value in VALUES]
    (base / "prior.csv").write_text("\n".join([f"{'words,' * by}value,count", *lines]) + "\n")
    return {
        "version": 1,
        "person": "pid",
        "columns": {"pid": "identifier", "line": "plain", "words": role, "ill": "sensitive"},
        "privacy": {"l": 4},
        "prior": {"file": "prior.csv"},
        "table": {"method": "veil"},
    }


def words(value):
    return f"called {value}"


def table(cells, size=1500):
    draw = random.Random(1)
    values = [draw.choice(VALUES) for _ in range(size)]
    columns = {"words": [cells(value) for value in values], "ill": values}
    return pa.table({"pid": [f"p{i}" for i in range(size)], "line": list(range(size)), **columns})


def anatomy(policy, store, data):
    del store
    return anonymize(data, policy, method="anatomy")


def evolving(policy, store, data):
    with EvolvingTable.create(store, policy) as table_:
        table_.insert(data)
        return table_.publish()


def stream(policy, store, data):
    with Stream(policy, store=store) as feed:
        lines = feed.push(data)
        feed.close()
    return SimpleNamespace(records=SimpleNamespace(published=lines.count(b"\n")), tables={})


INTERFACES = {
    "table": lambda policy, store, data: anonymize(data, policy, store=store),
    "evolving": evolving,
    "series": lambda policy, store, data: Series(store, policy).publish(data),
    "anatomy": anatomy,
    "stream": stream,
}
DISCLOSIVE = {
    "name": words,
    "mostly": lambda value: words(value) if random.random() < 0.98 else "unknown",
    "flag": lambda value: "yes" if value == VALUES[3] else "no",
}


@pytest.mark.parametrize("role", ["plain", "quasi"])
@pytest.mark.parametrize(
    ("interface", "cells"),
    [
        (interface, cells)
        for interface in INTERFACES
        for cells in DISCLOSIVE
        if (interface, cells) != ("anatomy", "flag")
    ],
)
def test_a_disclosive_column_is_not_published(tmp_path, interface, cells, role):
    """Anyone who read the column was right about everybody, or about all who have the one illness."""
    policy = Policy.from_dict(rules(tmp_path / "rules", role), base=tmp_path / "rules")
    with pytest.raises(GuaranteeError, match="Column 'words' discloses") as refusal:
        INTERFACES[interface](policy, tmp_path / "store.db", table(DISCLOSIVE[cells]))
    assert "identifier" in str(refusal.value.hint)
    assert not any(value in str(refusal.value) for value in VALUES)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_column_that_discloses_little_is_published(tmp_path, interface):
    policy = Policy.from_dict(rules(tmp_path / "rules"), base=tmp_path / "rules")
    data = table(lambda value: "abc"[int(value[1:]) // 5])
    assert INTERFACES[interface](policy, tmp_path / "store.db", data).records.published == 1500


def test_amounts_name_no_value(tmp_path):
    """In data made by counting, ages go with the value, and no attacker knows this."""
    policy = Policy.from_dict(rules(tmp_path / "rules"), base=tmp_path / "rules")
    data = table(words)
    ages = [int(value[1:]) + 12 * (line % 3) for line, value in enumerate(data["ill"].to_pylist())]
    for interface, publish in INTERFACES.items():
        released = publish(policy, tmp_path / f"{interface}.db", data.set_column(2, "words", [ages]))
        assert released.records.published == 1500
    with pytest.raises(GuaranteeError):  # codes have gaps
        anonymize(data.set_column(2, "words", [[100 * age for age in ages]]), policy, store=tmp_path / "codes.db")


def test_a_rare_label_that_discloses_by_chance_is_published(tmp_path):
    """Nearly everybody has one value here, and the one person with another label has another value."""
    base = tmp_path / "rules"
    policy, size = Policy.from_dict(rules(base), base=base), 200
    columns = {"words": ["b", *["a"] * (size - 1)], "ill": [VALUES[1], *[VALUES[0]] * (size - 1)]}
    data = pa.table({"pid": [f"p{i}" for i in range(size)], "line": list(range(size)), **columns})
    assert anonymize(data, policy, store=tmp_path / "store.db").records.published == size


def test_many_strata_do_not_make_a_column_disclosive(tmp_path):
    """Hardly anybody shares stratum and label, and two persons who do rarely have different values."""
    (base := tmp_path / "rules").mkdir()
    about, draw = rules(base), random.Random(3)
    about["columns"]["ward"] = "quasi"
    wards = [f"w{i}" for i in range(60)]
    lines = [f"{ward},{value},9" for ward in wards for value in VALUES]
    (base / "prior.csv").write_text("\n".join(["ward,value,count", *lines]) + "\n")
    data = table(lambda _: draw.choice("abcdefghijklmnopqrst"), 900)
    data = data.append_column("ward", pa.array([draw.choice(wards) for _ in range(900)]))
    assert anonymize(data, Policy.from_dict(about, base=base), store=tmp_path / "a.db").records.published == 900


@pytest.mark.parametrize("interface", ["table", "evolving", "series"])
def test_what_the_prior_says_may_be_published(tmp_path, interface):
    """The prior then states what the column discloses: certainty, here."""
    policy = Policy.from_dict(rules(tmp_path / "rules", by=True), base=tmp_path / "rules")
    release = INTERFACES[interface](policy, tmp_path / "store.db", table(words))
    assert all(row["ill_1"] == row["ill_4"] == row["words"][7:] for row in release.tables["data"].to_pylist())


def test_the_command_line_refuses_it_with_the_ways_out(tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(rules(tmp_path)))
    pyarrow.csv.write_csv(table(words), tmp_path / "now.csv")
    files = {"-p": "policy.yaml", "-o": "out", "--store": "store.db"}
    with pytest.raises(SystemExit) as end:
        main(["anonymize", str(tmp_path / "now.csv"), *(w for k, v in files.items() for w in (k, str(tmp_path / v)))])
    assert end.value.code == 4
    assert "reticent prior --by" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
