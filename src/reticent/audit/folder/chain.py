"""Which release of its store each is: number, digest and predecessor, side by side and beside the ledger.

Guarantee: releases of one publication that are given together follow one another, each naming the digest of the one before it where that
    is given too; with the ledger, all three are those that the store keeps.
Not covered: without the ledger, a release by itself says of its store what it likes.
Cost: reads the manifests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from reticent.audit.published import Published
from reticent.audit.verdict import Verdict, none_of
from reticent.release import Ledger

_UNKNOWN = "number and predecessor in the store (give the ledger: --ledger STORE)"


def check_chain(releases: Sequence[Published], ledger: Ledger | None) -> Verdict:
    """The findings about releases that come from a store; nothing about others."""
    places = [place for release in releases if (place := _place(release)) is not None]
    if not places:
        return Verdict(())
    broken = sum(not _follows(before, after) for before, after in pairwise(places))
    findings = [none_of("releases follow one another as their store numbers them", broken)] if len(places) > 1 else []
    if ledger is None or not len(ledger):
        return Verdict(tuple(findings), (), (_UNKNOWN,) if any(place.get("number") != 1 for place in places) else ())
    digests = {entry.number: entry.digest for entry in ledger.entries}
    odd = sum(not _kept(place, digests) for place in places)
    return Verdict((*findings, none_of("number, digest and predecessor are those of the ledger", odd)))


def _place(release: Published) -> Mapping[str, Any] | None:
    place = (release.manifest or {}).get("store")
    return place if isinstance(place, dict) else None


def _follows(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether one release of a publication may stand behind another; those of two publications may anyhow."""
    if any(before.get(word) != after.get(word) for word in ("publisher", "generation")):
        return True
    first, second = before.get("number"), after.get("number")
    if not isinstance(first, int) or not isinstance(second, int) or first >= second:
        return False
    return second > first + 1 or after.get("predecessor") == before.get("digest")


def _kept(place: Mapping[str, Any], digests: Mapping[int, str]) -> bool:
    number = place.get("number")
    if not isinstance(number, int) or digests.get(number) != place.get("digest"):
        return False
    return digests.get(number - 1, "") == place.get("predecessor")
