"""The provenance of releases is compared with that of other releases and with the ledger."""

from __future__ import annotations

import pytest

from reticent.release import Ledger, LedgerEntry, RecordCounts
from reticent.verify.published import Published
from reticent.verify.verify import check_chain


def release(number, digest, predecessor, publisher="series"):
    place = {"publisher": publisher, "epoch": "0" * 16 + "-1", "number": number}
    return Published("", "veil", manifest={"store": place | {"digest": digest, "predecessor": predecessor}})


def ledger(*digests):
    return Ledger([LedgerEntry(at, "", "", "veil", RecordCounts(), digest) for at, digest in enumerate(digests, 1)])


GOOD = [release(1, "a", ""), release(2, "b", "a"), release(3, "c", "b")]


def test_releases_that_follow_one_another_hold():
    result = check_chain(GOOD, ledger("a", "b", "c"))
    assert result.holds
    assert not result.unchecked
    assert check_chain([GOOD[0], GOOD[2]], None).holds  # one is not given
    assert check_chain([GOOD[1], release(1, "x", "", "table-1")], None).holds  # of two publications


@pytest.mark.parametrize(
    "releases",
    [
        [GOOD[1], GOOD[0]],
        [GOOD[0], GOOD[0]],
        [GOOD[0], release(2, "b", "x")],
        [GOOD[0], release("2", "b", "a")],
    ],
)
def test_releases_that_do_not_follow_one_another_are_refuted(releases):
    assert not check_chain(releases, None).holds


@pytest.mark.parametrize("forged", [release(7, "b", "a"), release(2, "x", "a"), release(2, "b", "x")])
def test_forged_provenance_is_refuted_with_the_ledger_and_listed_as_unchecked_without_it(forged):
    assert not check_chain([forged], ledger("a", "b", "c")).holds
    assert check_chain([forged], None).unchecked
    assert not check_chain([GOOD[0]], None).unchecked
