"""Assertions for the tests of your own pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.api import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.api import Location, ReleaseSource
    from reticent.policy import Policy
    from reticent.verify import VerificationResult


def assert_holds(releases: ReleaseSource | Sequence[ReleaseSource], policy: Policy | Location) -> VerificationResult:
    """Fail a test with every refuted claim, never with a cell. `releases` is as in `reticent.verify`.

    from reticent.testing import assert_holds

    def test_the_line_list_may_leave():
        assert_holds("build/line-list.csv", "policy.yaml")
    """
    result = verify(releases, policy)
    if not result.holds:
        raise AssertionError(repr(result))
    return result
