from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reticent.datasets import census, feed, hospital, visits
from reticent.datasets.draw import BLOCK, Choice, generator, numbered_ids, zipf
from reticent.errors import PolicyError


def m_distinct(n, seed=0, size=1_000):
    return census.batches(n, seed, size, layout="m-distinct")


KINDS = {
    "hospital": hospital.batches,
    "feed": feed.batches,
    "census": census.batches,
    "m-distinct": m_distinct,
    "visits": visits.batches,
}


def joined(batches) -> pa.Table:
    return pa.concat_tables(batches).combine_chunks()


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_rows_other_seed_other_rows(kind):
    make = KINDS[kind]
    assert joined(make(3_000, 5)).equals(joined(make(3_000, 5)))
    assert not joined(make(3_000, 5)).equals(joined(make(3_000, 6)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1_000, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_rows_do_not_depend_on_the_chunking(kind, size):
    make, n = KINDS[kind], 2 * BLOCK + 500
    parts = list(make(n, 1, size))
    assert [len(part) for part in parts] == [size] * (n // size) + [n % size] * (n % size > 0)
    assert joined(parts).equals(joined(make(n, 1, 777)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_table_begins_a_long_one(kind):
    make = KINDS[kind]
    assert joined(make(10, 1)).equals(joined(make(BLOCK + 10, 1)).slice(0, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_still_have_columns(kind):
    assert joined(KINDS[kind](0)).num_rows == 0
    assert joined(KINDS[kind](0)).schema == joined(KINDS[kind](1)).schema


def test_wrong_numbers_are_refused():
    with pytest.raises(PolicyError):
        hospital.generate(-1)
    with pytest.raises(PolicyError):
        hospital.generate(1, seed=-1)
    with pytest.raises(PolicyError):
        list(hospital.batches(1, size=0))


def test_choice_follows_the_shares_and_never_draws_the_impossible():
    choice = Choice([(0, 3, 1, 0), (1, 0, 0, 1), (0, 0, 1, 0)])
    profile = np.repeat([0, 1, 2], 40_000)
    drawn = choice.draw(generator(1, "test"), profile)
    for row in range(3):
        seen = np.bincount(drawn[profile == row], minlength=4) / 40_000
        assert np.allclose(seen, choice.shares[row], atol=0.01)
        assert (seen[choice.shares[row] == 0] == 0).all()


class AlmostOne:
    """The largest number a generator can give: the place where rounding bites."""

    def random(self, count):
        return np.full(count, np.nextafter(1.0, 0.0))


def test_choice_survives_the_edge():
    weights = np.ones((30, 7))
    weights[:, 5:] = 0
    assert (Choice(weights).draw(AlmostOne(), np.arange(30)) == 4).all()


def test_zipf_falls_and_sums_to_one():
    shares = zipf(50)
    assert np.isclose(shares.sum(), 1)
    assert (np.diff(shares) < 0).all()


def test_numbered_pads_with_zeros():
    assert numbered_ids("P", np.array([0, 7, 1_234]), 5).to_pylist() == ["P00000", "P00007", "P01234"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_block_repeats_another(kind):
    table = joined(KINDS[kind](2 * BLOCK, 1))
    last = table.column_names[-1]
    assert not table[last].slice(0, BLOCK).combine_chunks().equals(table[last].slice(BLOCK).combine_chunks())
