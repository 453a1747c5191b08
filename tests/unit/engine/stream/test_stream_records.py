"""A record's hashes depend on its cells alone: not on how the batch is cut, nor on how Arrow stores the cells."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent import _core
from reticent.engine.stream.records import RecordHasher, iter_entries, journal_entry
from reticent.engine.stream.values import Values
from reticent.errors import DataError, StateError
from reticent.policy.cells import canonical_form

KEY = bytes(range(32))
CELL = st.one_of(st.none(), st.text(max_size=5))
ROWS = st.lists(st.tuples(CELL, st.text(max_size=5), st.one_of(st.none(), st.integers(-5, 5)), CELL, CELL), max_size=20)


def table(rows) -> pa.Table:
    kinds = [pa.string(), pa.string(), pa.int64(), pa.string(), pa.string()]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.Table.from_arrays(columns, names=["note", "who", "age", "town", "ill"])


def read(hasher: RecordHasher, batch: pa.Table):
    records = hasher.read(batch, np.arange(batch.num_rows, dtype=np.uint64))
    return records.quasi.tolist(), records.persons.tolist(), records.codes.tolist()


def fresh(key: bytes = KEY) -> RecordHasher:
    return RecordHasher(("age", "town"), "who", "ill", key, Values([]))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(0, 20))
def test_slices_and_encodings_change_nothing(rows, cut):
    whole = table(rows)
    expected = read(fresh(), whole)
    cut = min(cut, len(rows))
    chunked = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    padded = pa.concat_tables([whole.slice(0, cut), whole]).combine_chunks().slice(cut)
    encoded = whole.set_column(3, "town", whole.column("town").dictionary_encode())
    encoded = encoded.set_column(1, "who", encoded.column("who").cast(pa.large_string()))
    narrow = whole.set_column(2, "age", whole.column("age").cast(pa.int8()))
    turned = whole.select(["ill", "town", "age", "who", "note"])
    same = fresh()  # one hasher for all: it must notice that the schema changes
    for batch in (chunked, padded, encoded, narrow, turned, whole):
        assert read(same, batch) == expected


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_equal_cells_and_no_others_give_equal_hashes(rows):
    values = Values(["b", None])
    hasher, batch = RecordHasher(("age", "town"), "who", "ill", KEY, values), table(rows)
    quasi, persons, codes = read(hasher, batch)
    assert len(set(zip([(row[2], row[3]) for row in rows], quasi, strict=True))) == len(set(quasi))
    assert len({row[1] for row in rows}) == len(set(persons))
    first = {"b": "b", canonical_form(None): None}
    assert [values.labels[code] for code in codes] == [first.setdefault(canonical_form(row[4]), row[4]) for row in rows]
    again = hasher.read(batch, np.arange(len(rows), dtype=np.uint64))  # now the core knows every value
    assert (again.codes.tolist(), again.labels) == (codes, ())


def test_another_key_gives_other_hashes():
    batch = table([("", "p", 1, "x", "a")])
    other = fresh(bytes(32))
    assert read(fresh(), batch)[0] != read(other, batch)[0]
    assert read(fresh(), batch)[1] != read(other, batch)[1]


def test_records_without_a_person_are_counted_and_refused():
    batch = table([("", "p", 1, "x", "a"), ("", None, 1, "x", "a"), ("", None, 1, "x", "a")])
    with pytest.raises(DataError, match="2 records have no value in 'who'"):
        read(fresh(), batch)


def test_new_values_are_reported_once():
    hasher, seqs = fresh(), np.arange(3, dtype=np.uint64)
    batch = table([("", "p", 1, "x", "a"), ("", "q", 1, "x", None), ("", "r", 1, "x", "a")])
    assert hasher.read(batch, seqs).labels == ("a", None)
    assert hasher.read(batch, seqs).labels == ()


def test_the_core_refuses_what_is_no_whole_batch():
    hasher = _core.stream.Hasher(KEY)
    rows = pa.record_batch({"a": ["x", "y"], "b": [1.5, 2.5]})
    assert len(hasher.read(rows.__arrow_c_array__(), [0, 1], None, 0).quasi) == 2
    with pytest.raises(ValueError, match="no such column"):
        hasher.read(rows.__arrow_c_array__(), [2], None, 0)
    with pytest.raises(TypeError, match="record batch"):
        hasher.read(rows.column(0).__arrow_c_array__(), [0], None, 0)
    with pytest.raises(TypeError, match="record batch"):
        hasher.read(pa.StructArray.from_arrays(rows.columns, names=["a", "b"])[1:].__arrow_c_array__(), [0], None, 0)
    with pytest.raises(TypeError, match="type that the core"):
        hasher.read(pa.record_batch({"a": pa.array([1], pa.int8())}).__arrow_c_array__(), [0], None, 0)


@pytest.mark.parametrize("seqs", [[3, 4, 5], [3, 4, 7]])
def test_a_journal_gives_back_what_was_written(seqs):
    seqs, columns = np.array(seqs, np.uint64), (np.array([9, 8, 9], np.uint64), np.array([0, 1, 65_535], np.uint16))
    journal = journal_entry({"labels": ["x"]}, seqs, columns) + journal_entry({}, seqs[:0], (seqs[:0], columns[1][:0]))
    (head, *told), (_, *nothing) = iter_entries(journal, (np.uint64, np.uint16))
    assert (head["labels"], told[0].tolist()) == (["x"], seqs.tolist())
    assert [column.tolist() for column in told[1]] == [column.tolist() for column in columns]
    assert (nothing[0].tolist(), [column.tolist() for column in nothing[1]]) == ([], [[], []])
    with pytest.raises(StateError, match="corrupt"):
        list(iter_entries(journal[:-20], (np.uint64, np.uint16)))
