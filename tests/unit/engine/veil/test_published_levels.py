"""Strata of records that differ in one of many columns, and which part of a code decides what is published."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.engine.stream.records import Labels
from reticent.engine.veil.published_levels import PublishedLevels
from reticent.policy import Policy

COLUMNS = [f"c{number}" for number in range(9)]


def test_combinations_of_many_columns_are_distinguished():
    # 256 values in each of nine columns are more combinations than there are numbers of 64 bits.
    cells = [[f"v{row}"] * len(COLUMNS) for row in range(256)] + [["v1", *["v0"] * (len(COLUMNS) - 1)]]
    table = pa.table({name: [row[at] for row in cells] for at, name in enumerate(COLUMNS)})
    policy = Policy.from_dict({"version": 1, "columns": dict.fromkeys(COLUMNS, "quasi") | {"ill": "sensitive"}})
    strata = [("v0",) * len(COLUMNS), ("*",) * len(COLUMNS)]
    assigned = PublishedLevels(policy, COLUMNS, strata).publish(table)[1].tolist()
    assert assigned == [0] + [1] * 256


PREFIXES = st.one_of(st.integers(1, 5), st.lists(st.integers(1, 5), min_size=1, max_size=3))


@settings(max_examples=200, deadline=None)
@given(PREFIXES, st.integers(0, 5), st.lists(st.text("ab*", max_size=6), min_size=2, max_size=30))
def test_texts_with_the_same_prefix_and_length_are_published_alike(prefix, level, texts):
    height = (prefix if isinstance(prefix, int) else len(prefix) + 1) if prefix != 1 else 1
    place = {"role": "quasi", "level": min(level, height), "hierarchy": {"prefix": prefix}}
    policy = Policy.from_dict({"version": 1, "columns": {"place": place, "ill": "sensitive"}})
    levels = PublishedLevels(policy, [], [()])
    leading = levels.prefix_length("place")
    assert (leading is None) == (place["level"] == 0)
    labels = Labels("place", levels)
    codes: dict[tuple[str, int], set[int]] = {}
    for text in texts:
        codes.setdefault((text[:leading], len(text)), set()).update(labels.learn([text]))
    assert all(len(alike) == 1 for alike in codes.values())
