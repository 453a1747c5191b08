"""Variants of one value count as one value in evolving tables, streams and priors."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.veil.domain import Domain
from reticent.engine.veil.prior.fit import fit
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy

COLUMNS = {"id": "identifier", "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"}
POLICY = {"version": 1, "person": "id", "columns": COLUMNS, "privacy": {"l": 2}}
MERGED = POLICY | {"columns": COLUMNS | {"ill": {"role": "sensitive", "normalize": True}}}


def rows(*ills, first=0):
    at = range(first, first + len(ills))
    return pa.table({"id": [f"p{n}" for n in at], "age": [20 + n for n in at], "ill": list(ills)})


def table(settings, method):
    return publisher(Policy.from_dict(settings), "evolving", method, rng=Rng.from_seed(1))


@pytest.mark.parametrize("method", ["indexed", "red", "encc"])
def test_an_evolving_table_refuses_variants_of_what_it_holds(method):
    engine = table(POLICY, method)
    engine.insert(rows("HIV", "gout", "flu", None))
    with pytest.raises(DataError, match="variants"):
        engine.insert(rows("hiv ", "gout", first=4))
    with pytest.raises(DataError, match="variants"):
        engine.insert(rows("", first=4))
    with pytest.raises(DataError, match="variants"):
        engine.update(rows("Hiv"))
    feed = rows("asthma", "Asthma", first=4).append_column("op", pa.array(["insert", "insert"]))
    with pytest.raises(DataError, match="variants"):
        engine.apply(feed)
    assert engine.counts.withheld + engine.counts.published <= 4


def test_an_evolving_table_merges_variants_if_the_policy_says_so():
    engine = table(MERGED, "indexed")
    engine.insert(rows("HIV", "gout", "flu", "gout"))
    engine.insert(rows("hiv ", "Gout", first=4))
    (release,) = engine.cut()
    assert set(release.tables["st"]["value"].to_pylist()) <= {"HIV", "gout", "flu"}


def stream(tmp_path, method, prior, **privacy):
    (tmp_path / "prior.csv").write_text(prior)
    settings = POLICY | {"prior": {"file": "prior.csv"}, "privacy": {"l": 2} | privacy, "stream": {"method": method}}
    return publisher(Policy.from_dict(settings, base=tmp_path), "stream", method, rng=Rng.from_seed(1))


def test_a_stream_reads_a_variant_as_what_came_first(tmp_path):
    engine = stream(tmp_path, "delay-free", "value,count\nHIV,5\ngout,5\nflu,5\n")
    engine.push(rows("hiv ", "asthma", "Asthma", "gout"))
    assert engine.values.labels == ["HIV", "flu", "gout", "asthma"]


def test_castle_publishes_one_variant(tmp_path):
    engine = stream(tmp_path, "castle", "value,count\nHIV,5\n", k=2)
    ills = ["HIV", "hiv ", "Hiv", "HIV", "gout", "Gout"] * 5
    releases = [*engine.push(rows(*ills)), *engine.close()]
    shown = {ill for release in releases for name in release.tables for ill in _column(release.tables[name], "ill")}
    assert shown == {"HIV", "gout"}


def _column(data, name):
    return data[name].to_pylist() if name in data.column_names else []


@pytest.mark.parametrize("method", ["delay-free", "veil"])
def test_a_prior_with_variants_is_refused(tmp_path, method):
    with pytest.raises(PolicyError, match="variants"):
        stream(tmp_path, method, "value,count\nHIV,5\nhiv,5\nflu,5\n")


def test_a_past_with_variants_is_refused_or_merged():
    rng = np.random.default_rng(1)
    past = rows(*rng.choice(["HIV", "hiv ", "gout", "flu"], 400))
    with pytest.raises(DataError, match="variants"):
        fit(past, Policy.from_dict(POLICY), "ill", l=2, rng=rng)
    labels = fit(past, Policy.from_dict(MERGED), "ill", l=2, rng=rng).domain.labels
    assert len({"HIV", "hiv "} & set(labels)) == 1
    assert {"gout", "flu"} < set(labels)


@pytest.mark.parametrize(("merged", "codes"), [(True, [0, 0, 2, 1]), (False, [-1, 0, -1, 1])])
def test_a_veiled_stream_recognizes_variants_of_values_of_its_prior(merged, codes):
    columns = COLUMNS | {"ill": {"role": "sensitive", "normalize": merged}}
    domain = Domain(["E11.9", "gout", "flu"], Policy.from_dict(POLICY | {"columns": columns}), "ill")
    assert domain.codes(["E119", "E11.9", "Gout", "flu"]) == codes
