"""Conditions over exact and generalised cells, read by a small grammar and never run."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PolicyError
from reticent.read.cells import date_extent, number_extent, overlap
from reticent.read.where import Condition, match, parse_condition

NAMES = ["age", "age group", "sex", "birth-date"]


def one(condition, cell, nodes=None):
    answer = match(parse_condition(condition, NAMES), pa.array([cell]), nodes)
    return float(answer.share[0]), bool(answer.sure[0]), bool(answer.perhaps[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age>=60", Condition("age", ">=", ("60",))),
        (" age group = old people ", Condition("age group", "=", ("old people",))),
        ("age in 40..59", Condition("age", "..", ("40", "59"))),
        ("sex in {m, f}", Condition("sex", "=", ("m", "f"))),
        ("sex not in m, f", Condition("sex", "!=", ("m", "f"))),
        ("sex='a=b'", Condition("sex", "=", ("a=b",))),
        ("birth-date<1980-02", Condition("birth-date", "<", ("1980-02",))),
    ],
)
def test_what_a_condition_says(text, expected):
    assert parse_condition(text, NAMES) == expected


@pytest.mark.parametrize("text", ["", "age", "age>=", ">=60", "agee>=60", "sex in ", "sex ~ m"])
def test_what_cannot_be_read_is_refused_kindly(text):
    with pytest.raises(PolicyError) as refusal:
        parse_condition(text, NAMES)
    assert refusal.value.hint


def test_the_nearest_column_is_named():
    with pytest.raises(PolicyError, match="Did you mean 'age'"):
        parse_condition("aeg>=3", NAMES)


@pytest.mark.parametrize(
    ("condition", "cell", "expected"),
    [
        ("age>=60", "[40, 80)", (0.5, False, True)),
        ("age>=60", "[60, 80)", (1.0, True, True)),
        ("age>=60", "[40, 60)", (0.0, False, False)),
        ("age>60", "[60, 61]", (0.5, False, True)),
        ("age<43", "[43, 97]", (0.0, False, False)),
        ("age in 40..59", "[40, 60)", (1.0, True, True)),
        ("age>=60", "64", (1.0, True, True)),
        ("age>=60", 64, (1.0, True, True)),
        ("age>=60", None, (0.0, False, False)),
        ("age>=60", "90+", (1.0, True, True)),
        ("age>=60", "<7", (0.0, False, False)),
        ("age!=60", "[60, 62)", (0.5, False, True)),
        ("sex=m", "{f, m}", (0.5, False, True)),
        ("sex in m, f", "{f, m}", (1.0, True, True)),
        ("sex=12345", "12***", (0.001, False, True)),
        ("sex=12*", "12***", (1.0, True, True)),
        ("sex=12*", "12345", (1.0, True, True)),
        ("sex=01*", "[00137, 01096]", (97 / 960, False, True)),
        ("sex=01*", "[01137, 01996]", (1.0, True, True)),
        ("sex=02*", "[00137, 01096]", (0.0, False, False)),
        ("sex=A1*", "[A01, B20]", (0.5, False, True)),
        ("sex=A01", "[A02, B20]", (0.0, False, False)),
        ("sex=true", True, (1.0, True, True)),
        ("sex!=TRUE", True, (0.0, False, False)),
        ("birth-date>=1980-07", "1980", (184 / 366, False, True)),
        ("birth-date=1980", "1980-Q3", (1.0, True, True)),
        ("birth-date<1980", dt.date(1979, 12, 31), (1.0, True, True)),
    ],
)
def test_shares_of_cells(condition, cell, expected):
    assert one(condition, cell) == pytest.approx(expected)


def test_a_cell_that_says_nothing_is_like_the_others_and_may_be_anything():
    answer = match(parse_condition("age>=60", NAMES), pa.array(["70", "70", "30", "30", "*"]))
    assert answer.share.tolist() == [1, 1, 0, 0, 0.5]
    assert answer.perhaps.tolist() == [True, True, False, False, True]
    assert not answer.sure[-1]


def test_a_node_stands_for_what_is_below_it():
    nodes = {"school": (("primary", "secondary"), 4)}
    cells = pa.array(["school", "primary", "secondary", "none"])
    answer = match(parse_condition("sex=primary", NAMES), cells, nodes)
    assert answer.share.tolist() == [0.25, 1, 0, 0]
    assert answer.perhaps.tolist() == [True, True, False, False]
    assert match(parse_condition("sex=school", NAMES), cells, nodes).sure.tolist() == [True, True, True, False]
    # A value that is published nowhere may be hidden below the node.
    assert match(parse_condition("sex=college", NAMES), cells, nodes).perhaps.tolist() == [True, False, False, False]


@pytest.mark.parametrize("sign", ["=", "!=", ">=", "<"])
@pytest.mark.parametrize("cell", ["{40, 70}", "{40, 70} or missing", "4*", "seniors", "[60, 70] or missing"])
def test_bounds_hold_for_every_value_that_a_cell_among_numbers_can_have(sign, cell):
    nodes = {"seniors": (("60", "70"), 2)}
    possible = {"{40, 70}": [40, 70], "4*": list(range(40, 50)), "seniors": [60, 70], "[60, 70]": list(range(60, 71))}
    answer = match(parse_condition(f"age{sign}60", NAMES), pa.array(["40", "60", "70", "61", "45", cell]), nodes)
    inside = [
        eval(f"{x} {'==' if sign == '=' else sign} 60")  # noqa: S307
        for x in possible[cell.removesuffix(" or missing")]
    ]
    assert answer.perhaps[-1] == any(inside)
    assert answer.sure[-1] == (all(inside) and not cell.endswith("missing"))
    assert answer.share[-1] == pytest.approx(sum(inside) / len(inside))


def test_a_column_that_shows_fractions_is_not_counted_in_whole_numbers():
    cells = pa.array(["[20, 25)", "22.5"])
    assert match(parse_condition("age<=24", NAMES), cells).sure.tolist() == [False, True]
    assert match(parse_condition("age>24", NAMES), cells).perhaps.tolist() == [True, False]
    assert match(parse_condition("age<=24", NAMES), pa.array(["[20, 25)", "22"])).sure.tolist() == [True, True]


@pytest.mark.parametrize("cell", ["2024-03-01T10:30:00", "2024-03-01 10:30:00", dt.datetime(2024, 3, 1, 10, 30)])  # noqa: DTZ001
def test_a_day_holds_its_moments(cell):
    for text, expected in {"=2024-03-01": 1, "<=2024-03-01": 1, ">2024-03-01": 0, ">=2024-03-01T12:00": 0}.items():
        assert match(parse_condition(f"birth-date{text}", NAMES), pa.array([cell])).share.tolist() == [expected]


def test_words_take_no_order():
    with pytest.raises(PolicyError, match="both be numbers"):
        match(parse_condition("sex>=m", NAMES), pa.array(["m", "f"]))


@given(st.text(max_size=40))
def test_no_text_is_run_or_breaks_the_parser(text):
    try:
        condition = parse_condition(text, NAMES)
    except PolicyError:
        return
    assert condition.column in NAMES
    assert condition.values


@given(st.integers(0, 60), st.integers(1, 40), st.integers(-5, 110), st.sampled_from([">=", ">", "<=", "<", "=", "!="]))
def test_the_share_of_an_interval_is_that_of_its_whole_numbers(low, width, border, sign):
    inside = [x for x in range(low, low + width) if eval(f"{x} {'==' if sign == '=' else sign} {border}")]  # noqa: S307
    share, sure, perhaps = one(f"age{sign}{border}", f"[{low}, {low + width})")
    assert share == pytest.approx(len(inside) / width)
    assert sure == (len(inside) == width)
    assert perhaps == (len(inside) > 0)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(-2e6, 2e6))
def test_shares_lie_between_the_bounds(low, width, border):
    cell = number_extent(f"[{low:.6f}, {low + width:.6f}]")
    share, sure, perhaps = overlap(cell, number_extent(f"[{border:.6f}, {border + 10:.6f})"))
    assert sure <= perhaps
    assert float(sure) <= share <= 1
    assert share == 0 or perhaps


@given(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)))
def test_a_day_lies_in_its_month_quarter_and_year(day):
    point = date_extent(day.isoformat())
    for cell in (f"{day:%Y-%m}", f"{day.year}-Q{(day.month + 2) // 3}", str(day.year)):
        assert overlap(point, date_extent(cell)) == (1.0, True, True)
