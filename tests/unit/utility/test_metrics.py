"""Every measure against a reference implementation that follows its formula word by word."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.policy import HierarchySpec
from reticent.policy.hierarchy import build_levels
from reticent.utility.measures import geometric_mean, interval_loss
from reticent.utility.metrics import measure
from reticent.utility.recoding import Recoding
from reticent.utility.stream import sau, sau_limit, stream_information_loss
from reticent.utility.workload import relative_error

# six leaves, of which only the first five occur in the data: absent leaves count in the loss
PATHS = {"a": "AB", "b": "AB", "c": "CD", "d": "CD", "e": "EF", "f": "EF"}
TREE = {"AB": ["a", "b"], "CD": ["c", "d"], "EF": ["e", "f"]}
LETTERS = build_levels(HierarchySpec(tree=TREE), pa.array(list("abcde")), column="letter")
SEX = build_levels(None, pa.array(["f", "m"]), column="sex")

TABLES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2), st.integers(0, 1), st.booleans()),
    min_size=1,
    max_size=12,
)


def published(leaf, level):
    return [leaf, PATHS[leaf], "*"][level]


def below(leaf, level):
    return [1, sum(PATHS[x] == PATHS[leaf] for x in PATHS), 6][level]


@settings(max_examples=120, deadline=None)
@given(TABLES)
def test_every_measure_equals_its_formula(rows):
    letters, sexes = ["abcde"[r[0]] for r in rows], ["fm"[r[1]] for r in rows]
    up, sex_up, gone = [r[2] for r in rows], [r[3] for r in rows], [r[4] for r in rows]
    metrics = measure(
        {
            "letter": Recoding.from_levels(np.array([r[0] for r in rows], np.int32), LETTERS, np.array(up)),
            "sex": Recoding.from_levels(np.array([r[1] for r in rows], np.int32), SEX, np.array(sex_up)),
        },
        suppressed=np.array(gone),
    )
    n = len(rows)
    # loss
    t = [sum(1 if s else below(x, u) / 6 for x, u, s in zip(letters, up, gone, strict=True))]
    t.append(sum(1 if s or u else 1 / 2 for u, s in zip(sex_up, gone, strict=True)))
    losses = [max(0, (t[0] - n / 6) / (n - n / 6)), max(0, (t[1] - n / 2) / (n - n / 2))]
    assert metrics.loss == pytest.approx(math.sqrt((1 + losses[0]) * (1 + losses[1])) - 1, abs=1e-8)
    assert metrics.attributes["letter"]["loss"] == pytest.approx(losses[0], abs=1e-9)
    # ncp, equations (3) and (5)
    cells = [1 if s else ((below(x, u) - 1) / 5 + v) / 2 for x, u, v, s in zip(letters, up, sex_up, gone, strict=True)]
    assert metrics.ncp == pytest.approx(sum(cells) / n)
    # classes
    shown = [(published(x, u), "*" if v else y) for x, u, v, y in zip(letters, up, sex_up, sexes, strict=True)]
    classes = Counter(c for c, s in zip(shown, gone, strict=True) if not s)
    lost = sum(gone)
    assert metrics.discernibility == sum(c * c for c in classes.values()) + lost * n
    assert metrics.average_class_size == n / (len(classes) + (lost > 0))
    # levels
    climbed = [sum(1 if s else u / 2 for u, s in zip(up, gone, strict=True)) / n]
    climbed.append(sum(1 if s else v for v, s in zip(sex_up, gone, strict=True)) / n)
    assert metrics.precision == pytest.approx(sum(climbed) / 2)
    assert metrics.height == pytest.approx((sum(up) + sum(sex_up)) / n)
    assert metrics.entropy == pytest.approx(
        _bits(letters, [c[0] for c in shown], gone) + _bits(sexes, [c[1] for c in shown], gone), abs=1e-8
    )


def _bits(source, shown, gone):
    joint, marginal = Counter(zip(source, shown, strict=True)), Counter(shown)
    first = -sum(count * math.log2(count / marginal[value]) for (_, value), count in joint.items())
    hidden = Counter(value for value, s in zip(shown, gone, strict=True) if s)
    return first - sum(count * math.log2(count / sum(gone)) for count in hidden.values())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5), st.booleans()), min_size=1, max_size=8))
def test_counted_combinations_equal_repeated_records(rows):
    codes, counts, gone = (np.array(x) for x in zip(*rows, strict=True))
    short = measure({"x": Recoding.from_levels(codes.astype(np.int32), LETTERS, 1)}, suppressed=gone, counts=counts)
    spread = Recoding.from_levels(np.repeat(codes, counts).astype(np.int32), LETTERS, 1)
    long = measure({"x": spread}, suppressed=np.repeat(gone, counts))
    for name, value in short.to_dict().items():
        assert value == pytest.approx(getattr(long, name), abs=1e-8)


def test_numeric_attributes_lose_the_width_they_span():
    ages = build_levels(HierarchySpec(intervals=(10, 20)), pa.array([20, 25, 31, 60]), column="age")
    codes = np.arange(4, dtype=np.int32)
    assert Recoding.from_levels(codes, ages, 0).ncp.tolist() == [0, 0, 0, 0]
    assert Recoding.from_levels(codes, ages, 1).ncp.tolist() == pytest.approx([5 / 40, 5 / 40, 0, 0])
    assert Recoding.from_levels(codes, ages, 2).ncp.tolist() == pytest.approx([11 / 40, 11 / 40, 11 / 40, 0])
    assert Recoding.from_levels(codes, ages, 3).ncp.tolist() == [1, 1, 1, 1]


def test_values_cut_freely_have_no_level_to_measure():
    cut = replace(Recoding.from_levels(np.arange(5, dtype=np.int32), LETTERS, 1), level=None)
    metrics = measure({"x": cut})
    assert (metrics.precision, metrics.height) == (None, None)
    assert "precision" not in metrics.to_dict()


def test_the_untouched_table_scores_zero_and_the_suppressed_one():
    untouched = Recoding.from_levels(np.arange(5, dtype=np.int32), LETTERS, 0)
    metrics = measure({"x": untouched})
    assert (metrics.loss, metrics.ncp, metrics.entropy, metrics.height, metrics.precision) == (0, 0, 0, 0, 0)
    everything = measure({"x": untouched}, suppressed=np.ones(5, dtype=bool))
    assert (everything.loss, everything.ncp, everything.precision) == (1, 1, 1)


def test_weights_are_scaled_to_the_largest():
    assert geometric_mean([0.5, 0.2], [2, 1]) == pytest.approx(math.sqrt(1.5 * 1.1) - 1)


def test_the_stream_papers_example():
    # QI (24, male), candidates Diag.A and Diag.B: 1/3 * (0 + 0 + 1/2)
    assert stream_information_loss(np.array([2]), np.array([1]), 2) == pytest.approx(1 / 6)
    assert stream_information_loss(np.array([2, 4]), np.array([3, 1]), 1) == pytest.approx((0.5 * 3 + 0.75) / 4 / 2)
    assert sau(0, 0) == 0
    assert sau(20, 5) == 0.75
    assert [round(sau_limit(l, 0.1002), 3) for l in (10, 15, 20, 25)] == [0.002, 0.335, 0.501, 0.601]
    assert interval_loss(np.array([3.0]), np.array([3.0]), 3, 3).tolist() == [0]


def test_nearly_empty_queries_do_not_weigh_more():
    assert relative_error(np.array([0.0, 10.0]), np.array([2.0, 5.0])).tolist() == [2, 0.5]
