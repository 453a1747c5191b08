"""Every release of every method says which attackers its guarantee does not cover."""

import pytest
from cases import CASES, run

from reticent.release.wording import exclusions

VEIL = {
    "informed": "better informed than the prior",
    "linked records": "depend on one another",
    "publications": "published elsewhere",
    "presence": "presence, return, absence",
}
"""The veil holds against insiders, and has words of its own for the others."""


def words(case):
    """What the releases of an engine say; where it published none yet, what the engine says."""
    releases, engine = run(case, case.table(1, 300), [])
    stated = {release.guarantee.not_covered for release in releases} or {engine.guarantee.not_covered}
    assert len(stated) == 1
    return stated.pop()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_method_names_the_attackers_it_does_not_cover(case):
    exclusions_ = words(case)
    if case.method == "veil":
        assert all(any(part in sentence for sentence in exclusions_) for part in VEIL.values())
    else:
        wanted = exclusions(persons=case.kind == "table" and case.rules().person is not None)
        assert not [sentence for sentence in wanted if sentence not in exclusions_]
    assert len(set(exclusions_)) == len(exclusions_)
