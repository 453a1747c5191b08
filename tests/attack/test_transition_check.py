"""The transition check: every event, or release of a series, is a step of the kernel. If no person's value changed, as in a
table that is released twice, then a candidate that changed is not the true value.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from reticent import Policy, Series, anonymize
from reticent.errors import GuaranteeError

VALUES = [f"v{i:02d}" for i in range(20)]
STAY = 0.5
SIZE = 400


def rules(base, kernel="shares"):
    base.mkdir()
    (base / "prior.csv").write_text("value,count\n" + "".join(f"{value},9\n" for value in VALUES))
    shares = "value,stay,within\n" + "".join(f"{value},{STAY},0\n" for value in VALUES)
    others = (1 - STAY) / (len(VALUES) - 1)
    steps = ((a, b, STAY if a == b else others) for a in VALUES for b in VALUES)
    matrix = "value,next,probability\n" + "".join(f"{a},{b},{share}\n" for a, b, share in steps)
    (base / "kernel.csv").write_text(shares if kernel == "shares" else matrix)
    prior = {"file": "prior.csv"} | ({"kernel": {"file": "kernel.csv"}} if kernel else {})
    columns = {"pid": "identifier", "line": "plain", "ill": "sensitive"}
    about = {"version": 1, "person": "pid", "columns": columns, "privacy": {"l": 4}, "prior": prior}
    return Policy.from_dict(about, base=base)


def table(values):
    return pa.table({"pid": [f"p{i}" for i in range(len(values))], "line": list(range(len(values))), "ill": values})


def moved(draw, values, stay):
    """The next values: each stays with this probability."""
    return [v if draw.random() < stay else draw.choice([w for w in VALUES if w != v]) for v in values]


def begun(tmp_path, kernel):
    draw = random.Random(1)
    values = [draw.choice(VALUES) for _ in range(SIZE)]
    series = Series(tmp_path / "store.db", rules(tmp_path / "rules", kernel))
    series.publish(table(values))
    return draw, series, values


@pytest.mark.parametrize("kernel", ["shares", "matrix"])
@pytest.mark.parametrize("stay", [1.0, 0.75, 0.1])
def test_persons_who_change_more_or_less_often_than_false_candidates_are_not_released(tmp_path, kernel, stay):
    """In two releases at l = 4, the candidates in both disclosed the values of 44% of the persons; in four releases, 79%."""
    draw, series, values = begun(tmp_path, kernel)
    newcomers = [draw.choice(VALUES) for _ in range(50)]
    with pytest.raises(GuaranteeError, match="of 400 values are unchanged since the person's last event"):
        series.publish(table(moved(draw, values, stay) + newcomers))
    assert series.status()["releases"] == 1
    series.publish(table(moved(draw, values, STAY)))


@pytest.mark.parametrize("kernel", ["shares", "matrix"])
def test_persons_who_change_as_often_as_false_candidates_are_released(tmp_path, kernel):
    draw, series, values = begun(tmp_path, kernel)
    for _ in range(4):
        values = moved(draw, values, STAY)
        series.publish(table(values))
    values = moved(draw, values, STAY)
    series.publish(table(values[:100]))  # most are away for once
    series.publish(table(moved(draw, values, STAY)))
    assert series.status()["releases"] == 7


def test_without_a_kernel_all_values_may_stay(tmp_path):
    _, series, values = begun(tmp_path, None)
    series.publish(table(values))
    assert series.status()["releases"] == 2


@pytest.mark.parametrize(("stay", "refused"), [(STAY, False), (0.95, True), (0.1, True)])
def test_the_transition_check_covers_visits_in_one_table(tmp_path, stay, refused):
    policy, draw = rules(tmp_path / "rules"), random.Random(2)
    about = policy.to_dict()
    about |= {"person": {"column": "pid", "events": "line"}, "table": {"method": "veil"}}
    policy, visits = Policy.from_dict(about, base=policy.base), [[draw.choice(VALUES) for _ in range(SIZE)]]
    for _ in range(2):
        visits.append(moved(draw, visits[-1], stay))
    data = pa.concat_tables([table(values) for values in visits])
    data = data.set_column(1, "line", pa.array([number // SIZE for number in range(3 * SIZE)]))
    if not refused:
        assert anonymize(data, policy, store=tmp_path / "store.db").records.published == 3 * SIZE
        return
    with pytest.raises(GuaranteeError, match="of 800 values are unchanged since the person's last event"):
        anonymize(data, policy, store=tmp_path / "store.db")
