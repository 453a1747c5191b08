"""For the tests of other people's pipelines: a table that must not leave before it keeps the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.api import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.api import Location, ReleaseSource
    from reticent.policy import Policy
    from reticent.verify import VerificationResult


def assert_holds(releases: ReleaseSource | Sequence[ReleaseSource], policy: Policy | Location) -> VerificationResult:
    """Fails a test with every refuted claim, never with a cell; `releases` as in `reticent.verify`.

    from reticent.testing import assert_holds

    def test_the_line_list_may_leave():
        assert_holds("build/line-list.csv", "policy.yaml")
    """
    verdict = verify(releases, policy)
    if not verdict.holds:
        raise AssertionError(repr(verdict))
    return verdict
