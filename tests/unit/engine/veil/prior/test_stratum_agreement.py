"""The parameter set assigns every record to the stratum of the prior that it was counted in."""

import numpy as np
import pyarrow as pa

from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.fitted_prior import write_prior
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.strata import Split, strata
from reticent.policy import Policy

TREE = Split("ward", "surgery", None, Split("sex", "f", Split("age", "[0, 50)", None, None), None))


def records():
    rng = np.random.default_rng(1)
    ward = rng.choice(["surgery", "eyes", None], 300).tolist()
    return pa.table(
        {"ward": ward, "sex": rng.choice(["f", "m"], 300), "age": rng.integers(0, 100, 300), "ill": ["flu"] * 300}
    )


def assign(tree, folder):
    """Stratum of every record: as the fit counted it, and as the parameter set reads it from the file."""
    cells = strata(tree)
    prior = Prior(("flu", "gout"), cells, np.full((len(cells), 2), 0.5), np.full(len(cells), 100.0))
    write_prior(prior, folder / "prior.csv")
    columns = {
        "ward": "quasi",
        "sex": "quasi",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}, "level": 1},
        "ill": "sensitive",
    }
    policy = Policy.from_dict(
        {"version": 1, "columns": columns, "privacy": {"l": 2}, "prior": {"file": "prior.csv"}}, base=folder
    )
    table = records()
    return prior.assign_strata(published_fields(table, policy, prior.columns), table.num_rows), VeilParameters.of(
        policy, "table"
    ).levels.publish(table)[1]


def test_strata_agree_where_the_order_of_the_file_does_not_matter(tmp_path):
    counted, veiled = assign(
        Split("ward", "surgery", Split("age", "[0, 50)", None, None), Split("ward", "(missing)", None, None)), tmp_path
    )
    assert len(set(counted.tolist())) == 4
    assert counted.tolist() == veiled.tolist()


def test_strata_agree_where_a_later_stratum_has_more_cells(tmp_path):
    counted, veiled = assign(TREE, tmp_path)
    assert counted.tolist() == veiled.tolist()
