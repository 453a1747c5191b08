from __future__ import annotations

import pyarrow.compute as pc
import pytest

from reticent.datasets import adult
from reticent.errors import DataError

ORIGINAL = """\
39, State-gov, 1, Bachelors, 13, Never-married, Adm-clerical, Unmarried, White, Male, 2174, 0, 40, United-States, <=50K
50, ?, 2, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 0, 13, United-States, >50K
38, Private, 3, HS-grad, 9, Divorced, Sales, Husband, White, Male, 0, 0, 40, ?, <=50K

"""
COMPLETE = """\
sex;age;race;marital-status;education;native-country;workclass;occupation;salary-class
Male;39;White;Never-married;Bachelors;United-States;State-gov;Adm-clerical;<=50K
Female;50;Black;Divorced;HS-grad;United-States;Private;Sales;>50K
"""


def test_complete_records(tmp_path):
    (tmp_path / "adult_30162.csv").write_text(COMPLETE)
    table = adult.load(tmp_path)
    assert tuple(table.column_names) == adult.COLUMNS
    assert table["age"].to_pylist() == [39, 50]


def test_original_is_reduced_to_complete_records(tmp_path):
    (tmp_path / "adult.data").write_text(ORIGINAL)
    table = adult.load(tmp_path)
    assert tuple(table.column_names) == adult.COLUMNS
    assert table.num_rows == 1
    assert table["workclass"].to_pylist() == ["State-gov"]
    assert adult.load_original(tmp_path).num_rows == 3


def test_stream_merges_salary_and_occupation(tmp_path):
    (tmp_path / "adult.data").write_text(ORIGINAL)
    table = adult.load_stream(tmp_path)
    assert tuple(table.column_names) == (*adult.STREAM_QUASI, adult.STREAM_SENSITIVE)
    assert table[adult.STREAM_SENSITIVE].to_pylist() == ["<=50K Adm-clerical", ">50K ?", "<=50K Sales"]


def test_fifteen_occupations_and_two_salaries_make_thirty(tmp_path):
    line = ORIGINAL.splitlines()[0]
    rows = [
        line.replace("Adm-clerical", f"Job-{job}").replace("<=50K", salary)
        for job in range(15)
        for salary in ("<=50K", ">50K")
    ]
    (tmp_path / "adult.data").write_text("\n".join(rows) + "\n")
    assert len(pc.unique(adult.load_stream(tmp_path)[adult.STREAM_SENSITIVE])) == 30


def test_stream_from_complete_records(tmp_path):
    (tmp_path / "adult_30162.csv").write_text(COMPLETE)
    assert adult.load_stream(tmp_path)[adult.STREAM_SENSITIVE].to_pylist() == ["<=50K Adm-clerical", ">50K Sales"]


def test_missing_files_are_an_error_with_a_hint(tmp_path):
    with pytest.raises(DataError, match="Download"):
        adult.load(tmp_path)


@pytest.mark.parametrize("text", ["a;b\ncanary;2\n", "canary;1;2\nx;y\n", ""])
def test_other_files_are_refused_without_showing_a_cell(tmp_path, text):
    (tmp_path / "adult_30162.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        adult.load(tmp_path)
    assert "canary" not in str(caught.value)
