"""ICD-9: every category finds its chapter, however its code is written."""

import pyarrow as pa
import pytest

from reticent.errors import DataError
from reticent.policy.hierarchy import build_levels
from reticent.policy.icd9 import BLOCKS, CHAPTERS, category, range_of
from reticent.policy.spec import HierarchySpec


def test_ranges_are_sorted_disjoint_and_nested():
    for ranges in (CHAPTERS, BLOCKS):
        flat = [code for pair in ranges for code in pair.split("-")]
        assert flat == sorted(flat)
    for first, last in (pair.split("-") for pair in BLOCKS):
        assert range_of(first, CHAPTERS) == range_of(last, CHAPTERS) is not None


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("250.83", ["250", "249-259", "240-279"]),
        ("8", ["008", "001-009", "001-139"]),
        ("4280", ["428", "420-429", "390-459"]),
        ("V57", ["V57", "V50-V59", "V01-V91"]),
        ("E909", ["E909", "E900-E909", "E000-E999"]),
        ("406", ["406", "390-459", "390-459"]),  # no block holds it
    ],
)
def test_paths(code, path):
    rungs = build_levels(HierarchySpec(icd9=True), pa.array([code, None]), column="diag")
    assert [labels[0].as_py() for labels in rungs.labels[1:-1]] == path
    assert rungs.labels[1].to_pylist()[1] is None


def test_strangers_are_counted():
    assert category("000") == "000"
    with pytest.raises(DataError, match="2 distinct values are not ICD-9 codes"):
        build_levels(HierarchySpec(icd9=True), pa.array(["flu", "000", "250"]), column="diag")
