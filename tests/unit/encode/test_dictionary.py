"""Columns to codes and back."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.encode import Dictionary, encode_table
from reticent.encode.dictionary import decode_values, encode_texts
from reticent.errors import DataError

VALUES = st.lists(st.one_of(st.none(), st.text(max_size=4)))


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_lossless_and_stable_across_batches(batches):
    words = Dictionary()
    seen = {}
    for batch in batches:
        codes = words.encode(pa.array(batch, type=pa.string()))
        assert codes.dtype == np.int32
        for value, code in zip(batch, codes.tolist(), strict=True):
            assert seen.setdefault(value, code) == code
        assert words.decode(codes).to_pylist() == batch
    assert len(words) == len(seen)


def test_dictionary_encoded_and_chunked_input_decodes_the_same():
    values = ["b", None, "a", "b", "c", None]
    chunks = [pa.array(values[:3]).dictionary_encode(), pa.array(values[3:]).dictionary_encode()]
    words = Dictionary()
    assert words.decode(words.encode(pa.chunked_array(chunks))).to_pylist() == values
    assert len(words) == 4
    assert Dictionary().encode(pa.array([None, None], type=pa.string())).tolist() == [0, 0]


def test_numbers_keep_their_type():
    words = Dictionary()
    words.encode(pa.array([1, 2], type=pa.int64()))
    words.encode(pa.array([2, 3], type=pa.int32()))
    assert words.values.to_pylist() == [1, 2, 3]
    with pytest.raises(DataError, match="type"):
        words.encode(pa.array(["x"]))


def test_nan_is_refused_with_the_column_named():
    with pytest.raises(DataError, match="'x'"):
        encode_table(pa.table({"x": [1.0, float("nan")]}), ["x"])
    with pytest.raises(DataError, match="NaN"):
        Dictionary().encode(pa.array([float("inf")]))


def test_repr_shows_no_value():
    words = Dictionary(pa.array(["CANARY"]))
    assert "CANARY" not in repr(words)
    assert "CANARY" not in repr(encode_table(pa.table({"x": ["CANARY"]}), ["x"]))


TEXTS = st.lists(st.text(alphabet="ab\u00e9\U0001f600", max_size=20), max_size=60)


@given(texts=TEXTS, skipped=st.integers(0, 5))
def test_texts_are_encoded_and_decoded_as_in_arrow(texts, skipped):
    column = pa.array(texts, pa.string()).slice(skipped)
    codes, values = encode_texts(column)
    expected = column.dictionary_encode()
    assert codes.tolist() == expected.indices.to_pylist()
    assert values.equals(expected.dictionary)
    decoded = decode_values(codes[::-1], values)
    decoded.validate(full=True)
    assert decoded.to_pylist() == column.to_pylist()[::-1]


def test_a_code_without_a_word_is_refused():
    with pytest.raises(ValueError, match="without a word"):
        decode_values(np.array([2], dtype=np.int32), pa.array(["a", "b"]))


@pytest.mark.parametrize("cells", [[f"w{n}" for n in range(30)], list(range(30)), [n / 4 for n in range(30)]])
@pytest.mark.parametrize("place", [0, 7, 30])
def test_words_that_are_read_back_keep_their_codes_the_missing_one_too(cells, place):
    values = pa.array([*cells[:place], None, *cells[place:]])
    again = Dictionary(pa.chunked_array([values.slice(0, 9), values.slice(9)]))
    assert again.values.to_pylist() == values.to_pylist()
    assert again.decode(np.arange(31, dtype=np.int32)).to_pylist() == values.to_pylist()
