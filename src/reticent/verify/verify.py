"""Verify: recompute every claim of a release, or of a series of releases, from the published files alone.

Guarantee: a claim that does not follow from the published files is refuted. The verifier trusts neither the figures of the
    manifest nor the code that made the release. Releases of one publication must follow one another; each names the digest
    of its predecessor. With the ledger, number, digest and predecessor must be those of the store.
Not covered: claims that the files cannot show (a loss, a secret key), which are listed as unchecked. Without the ledger, a
    single release can state any number and predecessor.
Cost: linear in the rows up to one sort; a million rows take seconds.
Reference: see the verifier of each shape: `generalized`, `anatomy`, `stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy import Policy
from reticent.release import Ledger, Release
from reticent.verify.folder.closed_lists import check_closed_lists
from reticent.verify.groups import as_text
from reticent.verify.published import Published, read_release
from reticent.verify.requirements import UnreadableClaimError
from reticent.verify.result import NEEDS_ORIGINAL, Finding, VerificationResult, none_of

if TYPE_CHECKING:
    from reticent.verify.original.persons import Input

    Source: TypeAlias = str | Path | Release | pa.Table | Published

VERIFIERS = {
    "generalized": ("generalized", "verify_release"),
    "anatomy": ("anatomy", "verify_release"),
    "m-distinct": ("series", "verify_release"),
    "veil": ("veil.verifier", "verify_release"),
    "linked": ("linked.verifier", "verify_release"),
}
"""The verifier of each shape of release: its module, which is loaded on first use, and its function."""

SEQUENCE_VERIFIERS = {
    "anatomy": ("sequence", "verify_sequence"),
    "veil": ("veil.trajectories", "verify_sequence"),
    "m-distinct": ("series", "verify_series"),
}
"""The verifier of several releases of one shape, taken together."""


def load_verifier(module: str, name: str) -> Callable[..., VerificationResult]:
    """Load one verifier by its module and name; loading all of them would slow a short command down."""
    verifier: Callable[..., VerificationResult] = getattr(import_module(f"reticent.verify.{module}"), name)
    return verifier


def verify(
    sources: Source | Sequence[Source],
    policy: Policy,
    *,
    ledger: Ledger | None = None,
    kind: str | None = None,
    fresh: int | None = None,
    original: Input | None = None,
) -> VerificationResult:
    """Recompute every claim of one release, or of several in the order they were published.

    Args:
        sources: folders, files of JSON lines, Release or Published values, or tables of any origin.
        policy: the roles, hierarchies and requirements to verify against.
        ledger: the group of every person, to link persons over several releases.
        kind: table, evolving, series or stream if the caller knows it; otherwise as the releases state.
        fresh: number of last releases to verify on their own too; the earlier ones were verified before.
        original: the input of a table, to recompute what the release alone cannot show: claims about persons.

    Returns:
        The findings; `VerificationResult.holds` is False if any claim is refuted.
    """
    several = list(sources) if isinstance(sources, Sequence) and not isinstance(sources, str) else [sources]
    releases = [read_release(source, f"release {i}" if len(several) > 1 else "") for i, source in enumerate(several, 1)]
    if kind is not None:
        releases = [replace(release, kind=kind) for release in releases]
    streams = [release for release in releases if release.shape == "stream"]
    results = [_verify_one(release, policy) for release in releases[-fresh if fresh else 0 :]]
    results += (
        [_run_safely(streams, partial(load_verifier("stream.verifier", "verify_stream"), streams, policy))]
        if streams
        else []
    )
    if original is not None and releases:
        results = _compare_with_original(releases, results, policy, original)
    results.append(check_chain(releases, ledger))
    shapes = {release.shape for release in releases}
    locations = [place for shape, place in SEQUENCE_VERIFIERS.items() if shape in shapes]
    results += [_run_safely(releases, partial(load_verifier(*place), releases, policy, ledger)) for place in locations]
    return VerificationResult(
        tuple(finding for result in results for finding in result.findings),
        tuple(dict.fromkeys(note for result in results for note in result.notes)),
        tuple(dict.fromkeys(claim for result in results for claim in result.unchecked)),
        {key: figure for result in results for key, figure in result.measured.items()},
    )


_SEPARATOR = " | "
_NOT_COMPARED = (
    "comparison with the original (Reticent compares a release of this shape only when it makes the release)"
)


def _compare_with_original(
    releases: Sequence[Published], results: list[VerificationResult], policy: Policy, original: Input
) -> list[VerificationResult]:
    """Add the comparison of the last release, or of the stream, with its input; drop the unchecked claims that it covers."""
    shape, original = releases[-1].shape, replace(original, table=_combine_columns(_cast_views(original.table), policy))
    if shape == "stream" and any(release.stream_file is not None for release in releases):
        compare = partial(load_verifier("stream.original", "compare_with_original"), releases, policy, original)
    elif shape in ("generalized", "anatomy", "veil"):
        compare = partial(
            load_verifier("veil.original" if shape == "veil" else "original.persons", "compare_with_original"),
            releases[-1],
            policy,
            original,
        )
    else:
        return [*results, VerificationResult((), (), (_NOT_COMPARED,))]
    remaining = [replace(v, unchecked=tuple(c for c in v.unchecked if not c.endswith(NEEDS_ORIGINAL))) for v in results]
    return [*remaining, _run_safely(releases, compare)]


def _cast_views(table: pa.Table) -> pa.Table:
    """Return the input with string views as strings: Arrow cannot take rows of string views."""
    views = [at for at, column in enumerate(table.columns) if pa.types.is_string_view(column.type)]
    for at in views:
        table = table.set_column(at, table.column_names[at], table.column(at).cast(pa.string()))
    return table


def _combine_columns(table: pa.Table, policy: Policy) -> pa.Table:
    """Return the input with the policy's combined columns, unless it has them already."""
    for name, column in policy.columns.items():
        parts = column.combine or ()
        if parts and (name in parts or name not in table.column_names) and set(parts) <= set(table.column_names):
            whole = pc.binary_join_element_wise(*(as_text(table[part]).fill_null("") for part in parts), _SEPARATOR)
            table = table.drop_columns(list(parts)).append_column(name, whole)
    return table


def _run_safely(releases: Sequence[Published], verifier: Callable[[], VerificationResult]) -> VerificationResult:
    """Run a verifier; a malformed file refutes the release instead of raising an error."""
    try:
        return verifier()
    except UnreadableClaimError:
        return VerificationResult((Finding("every claim is well-formed", holds=False),))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException):
        if all(release.manifest is None and release.stream_file is None for release in releases):
            raise
        return VerificationResult((Finding("tables and metadata files have the format of their shape", holds=False),))


def _verify_one(release: Published, policy: Policy) -> VerificationResult:
    place = VERIFIERS.get(release.shape)
    if release.shape == "stream":
        result = VerificationResult(())  # the parts of a stream are verified together
    elif place is None:
        result = VerificationResult((Finding("the shape of the release is known", holds=False),))
    else:
        result = _run_safely([release], partial(load_verifier(*place), release, policy))
    findings = list(result.findings)
    if release.shape != "generalized" and (demands := policy.privacy.overall):  # other shapes have no classes
        findings.append(
            none_of(
                "the release meets the policy's requirements on all classes together", len(demands), ", ".join(demands)
            )
        )
    if not release.no_manifest:
        findings[:0] = [
            none_of("files match the digests in the manifest", release.altered_files),
            *check_closed_lists(release, policy),
        ]
    notes = list(result.notes)
    if release.policy_hash is not None and release.policy_hash != policy.hash:
        notes.append("The release was made under another policy. It was verified against the given policy.")
    if release.name:
        findings = [replace(f, where=f"{release.name}{': ' if f.where else ''}{f.where}") for f in findings]
    return VerificationResult(tuple(findings), tuple(notes), result.unchecked, result.measured)


_UNKNOWN = "number and predecessor in the store (needs the ledger: --ledger STORE)"


def check_chain(releases: Sequence[Published], ledger: Ledger | None) -> VerificationResult:
    """Check the order and digests of releases that come from a store."""
    entries = [place for release in releases if (place := _store_entry(release)) is not None]
    if not entries:
        return VerificationResult(())
    broken = sum(not _follows(before, after) for before, after in pairwise(entries))
    findings = [none_of("releases follow one another as their store numbers them", broken)] if len(entries) > 1 else []
    if ledger is None or not len(ledger):
        return VerificationResult(
            tuple(findings), (), (_UNKNOWN,) if any(place.get("number") != 1 for place in entries) else ()
        )
    digests = ledger.digests
    mismatches = sum(not _matches_ledger(place, digests) for place in entries)
    return VerificationResult(
        (*findings, none_of("number, digest and predecessor are those of the ledger", mismatches))
    )


def _store_entry(release: Published) -> Mapping[str, Any] | None:
    place = (release.manifest or {}).get("store")
    return place if isinstance(place, dict) else None


def _follows(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether one release may follow another; releases of different publications always may."""
    if any(before.get(key) != after.get(key) for key in ("publisher", "epoch")):
        return True
    first, second = before.get("number"), after.get("number")
    if not isinstance(first, int) or not isinstance(second, int) or first >= second:
        return False
    return second > first + 1 or after.get("predecessor") == before.get("digest")


def _matches_ledger(place: Mapping[str, Any], digests: Mapping[int, str]) -> bool:
    number = place.get("number")
    if not isinstance(number, int) or digests.get(number) != place.get("digest"):
        return False
    return digests.get(number - 1, "") == place.get("predecessor")
