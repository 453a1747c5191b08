"""Columns that come as numbers with their words are numbered as their texts are."""

import pyarrow as pa
import pytest

from reticent.verify.groups import codes, decode_table, encode_column
from reticent.verify.published import TextTables


def worded(numbers, words):
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(words, pa.string()))]
    )


@pytest.mark.parametrize(
    "column",
    [
        worded([1, 0, 1], ["a", "b"]),
        worded([0, 1, 2], ["a", "b", "a"]),  # one text under two numbers
        worded([0, 2, 0], ["a", "kept inside", "b"]),  # a word that no cell has
        worded([1, 0], ["a", "b", "kept inside"]),
        worded([0, None, 1], ["a", "b"]),
        worded([0, 1, 1], [None, "b"]),
        worded([], []),
        pa.chunked_array([worded([0], ["a"]).chunk(0), worded([0], ["b"]).chunk(0)]),
    ],
    ids=["plain", "twice", "unused", "unused at the end", "missing", "missing word", "empty", "two parts"],
)
def test_words_are_not_believed(column):
    number, texts = codes(encode_column(column))
    assert [texts[code] for code in number] == column.to_pylist()
    assert len(set(texts)) == len(texts)
    assert set(texts) == set(column.to_pylist())


@pytest.mark.parametrize(
    "cells",
    [[3, 1, 1, 7], [-2, 5, -2], [0], [], [2**63 - 1, 2**63 - 2], [-(2**63), 2**63 - 1], [1, None, 2]],
)
def test_whole_numbers_near_and_far(cells):
    column = pa.chunked_array([pa.array(cells, pa.int64())])
    number, texts = codes(encode_column(column))
    assert [texts[code] for code in number] == [None if cell is None else str(cell) for cell in cells]
    assert len(set(texts)) == len(texts) == len(set(cells))


def test_the_verifier_reads_expanded_columns():
    tables = TextTables({"qit": pa.table({"group": [0, 1], "sex": worded([1, 0], ["f", "m"])})})
    assert tables.raw["qit"].equals(decode_table(tables.raw["qit"]))
    assert tables.raw["qit"].schema.types == [pa.int64(), pa.string()]
    assert tables.raw["qit"]["sex"].to_pylist() == tables["qit"]["sex"].to_pylist() == ["m", "f"]
