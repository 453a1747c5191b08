"""Rows of the input are assigned to rows of the release, in whatever sequence they are tried."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from labels_reference import covers
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from reticent.policy import Policy
from reticent.verify.original.row_assignment import assign_rows

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "day": {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}},
    "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
    "town": "quasi",
    "ward": "plain",
    "ill": "sensitive",
}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}})
QUASI = POLICY.quasi
VALUES = {
    "age": ["3", "7", "18", "18.5", "24", "31", "old", None],
    "day": ["2024-01-05", "2024-01-05 10:00:00", "2024-02-01", "2023-12-31", None],
    "zip": ["123", "124", "200", "", None],
    "town": ["rome", "oslo", "a, b", None],
    "ward": ["1", None],
    "ill": ["flu", "HIV", "", None],
}
LABELS = {
    "age": ["[0, 10)", "[0, 20)", "[3, 18]", "[18, 24] or missing", "[5, 31]", "24", "old", "*", None],
    "day": ["2024-01", "2024", "[2023-12-31, 2024-01-05]", "[2024-01-06, 2024-02-01] or missing", "*", None],
    "zip": ["12*", "1**", "[124, 200]", "123", "* or missing", ""],
    "town": ["{rome, oslo}", "{a, b, rome}", "[n, z]", "rome or missing", "*", None],
}


def text(cells):
    return pa.array(list(cells), pa.string())


def allowed(values, labels, name):
    """Values x labels, enumerated."""
    return np.array([[covers(value, label, POLICY, name) for label in labels] for value in values])


def enumerated(table, rows, offers=None):
    """Rows of the input x published rows: every pair is compared; and the same without the candidates."""
    fit = np.ones((table.num_rows, rows.num_rows), dtype=bool)
    for name in QUASI:
        fit &= allowed(table[name].to_pylist(), rows[name].to_pylist(), name)
    for name in ("ward",) if offers is not None else ("ward", "ill"):
        fit &= np.array([[own == shown for shown in rows[name].to_pylist()] for own in table[name].to_pylist()])
    if offers is None:
        return fit, fit
    here = [[(group, own or "") in offers for group in rows["group"].to_pylist()] for own in table["ill"].to_pylist()]
    return fit & np.array(here), fit


def most(fit):
    """How many published rows can be given a row of the input at once."""
    return int((maximum_bipartite_matching(csr_array(fit.T), perm_type="column") >= 0).sum())


def in_doubt(fit, rows):
    """Rows of the input with several kinds of places, or with rivals for the only kind."""
    kinds = [tuple(row.values()) for row in rows.to_pylist()]
    doubt = 0
    for own in fit:
        mine = {kinds[place] for place in np.flatnonzero(own)}
        rivals = [fit[:, kinds.index(kind)].sum() > kinds.count(kind) for kind in mine]
        doubt += len(mine) > 1 or any(rivals)
    return doubt


def drawn(rng, names, texts, size):
    return {name: text(rng.choice(np.array(texts[name], dtype=object), size)) for name in names}


def one_above(rng, column, name):
    """A label that may stand for each value, mostly."""
    labels = [*LABELS[name], *VALUES[name]]
    fits = allowed(column.to_pylist(), labels, name)
    return text(labels[rng.choice(np.flatnonzero(row))] if rng.random() < 0.9 else "rome" for row in fits)


@pytest.mark.parametrize("seed", range(60))
def test_the_result_is_that_of_comparing_every_pair_of_rows(seed):
    rng = np.random.default_rng(seed)
    table = pa.table(drawn(rng, [*QUASI, "ward", "ill"], VALUES, int(rng.integers(1, 25))))
    chosen = pa.array(rng.permutation(table.num_rows)[: int(rng.integers(1, table.num_rows + 1))])
    out = table.take(chosen)
    rows = pa.table(
        {name: one_above(rng, out[name], name) if name in QUASI else out[name] for name in out.column_names}
    )
    places, doubt, _ = assign_rows(
        SimpleNamespace(shape="generalized", tables={"data": rows}), POLICY, table, np.arange(table.num_rows)
    )
    fit, _ = enumerated(table, rows)
    assert doubt == in_doubt(fit, rows)
    check(places, fit)


@pytest.mark.parametrize("seed", range(30))
def test_the_result_is_the_same_in_groups_that_share_their_values(seed):
    rng = np.random.default_rng(seed)
    table = pa.table(drawn(rng, [*QUASI, "ward", "ill"], VALUES, int(rng.integers(1, 25))))
    chosen = table.take(pa.array(rng.permutation(table.num_rows)[: int(rng.integers(1, table.num_rows + 1))]))
    groups = text(str(number) for number in rng.integers(0, 4, chosen.num_rows))
    qit = chosen.drop_columns(["ill"]).append_column("group", groups)
    offers = {(group, value or "") for group, value in zip(groups.to_pylist(), chosen["ill"].to_pylist(), strict=True)}
    st = pa.table({"group": text(group for group, _ in offers), "value": text(value for _, value in offers)})
    release = SimpleNamespace(shape="anatomy", tables={"qit": qit, "st": st})
    places, doubt, _ = assign_rows(release, POLICY, table, np.arange(table.num_rows))
    fit, alike = enumerated(table, qit, offers)
    kinds = [tuple(row.values()) for row in qit.to_pylist()]
    several = [len({kinds[place] for place in np.flatnonzero(own)}) > 1 for own in alike]
    assert doubt == sum(many or own.sum() > 1 for many, own in zip(several, fit, strict=True))
    check(places, fit)


def check(places, fit):
    """Every row has one place that it fits, and no more rows could have one."""
    seats = np.flatnonzero(places >= 0)
    assert fit[places[seats], seats].all()
    assert len(set(places[seats])) == len(seats) == most(fit)


def test_no_row_is_unmatched_before_all_assignments_were_tried():
    # Each fits two of three places, each place two of the three: taken in order, nobody is left for the last one.
    columns = {name: text([VALUES[name][0]] * 3) for name in COLUMNS}
    table = pa.table(columns | {"town": text(["a", "b", "c"])})
    rows = pa.table(columns | {"town": text(["{a, c}", "{b, c}", "{a, b}"])})
    release = SimpleNamespace(shape="generalized", tables={"data": rows})
    places, doubt, _ = assign_rows(release, POLICY, table, np.arange(3))
    assert sorted(places) == [0, 1, 2]
    assert doubt == 3


def test_excluded_rows_of_the_input_are_not_assigned():
    table = pa.table({name: text([VALUES[name][0]] * 2) for name in COLUMNS})
    release = SimpleNamespace(shape="generalized", tables={"data": table})
    places, _, _ = assign_rows(release, POLICY, table, np.array([1]))
    assert sorted(places) == [-1, 1]
