"""verify: recompute every claim of a release, or of a series of releases, from what was published alone.

Guarantee: a claim that does not follow from the published files is refuted; nothing else is trusted, not the manifest's
    figures and not the code that made the release. Releases of one publication that are given together follow one another, each naming
    the digest of the one before it where that is given too; with the ledger, number, digest and predecessor are those that the store keeps.
Not covered: claims about what cannot be seen from outside (a loss, a secret key); they are listed as unchecked. Without the ledger, a
    release by itself says of its store what it likes.
Cost: linear in the rows up to one sort; a million rows take seconds.
Reference: see the judge of each kind: `generalised`, `anatomy`, `stream`.
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
from reticent.verify.result import Finding, VerificationResult, none_of

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
        sources: folders, files of JSON lines, Release values (or as the judge sees them), or tables of whatever origin.
        policy: the roles, hierarchies and requirements to judge by.
        ledger: who stood in which group or line, to link persons over several releases.
        kind: table, evolving, series or stream, by somebody who knows; otherwise the releases are asked.
        original: the input of a table, to recompute what the release alone cannot show: the claims of persons.
        fresh: how many of the last ones are judged by themselves too; the others were before. All are seen side by side.

    Returns:
        The findings; `Verdict.holds` is False as soon as one claim is refuted.
    """
    several = list(sources) if isinstance(sources, Sequence) and not isinstance(sources, str) else [sources]
    releases = [read_release(source, f"release {i}" if len(several) > 1 else "") for i, source in enumerate(several, 1)]
    if kind is not None:
        releases = [replace(release, kind=kind) for release in releases]
    streams = [release for release in releases if release.shape == "stream"]
    verdicts = [_verify_one(release, policy) for release in releases[-fresh if fresh else 0 :]]
    verdicts += (
        [_run_safely(streams, partial(load_verifier("stream.verifier", "verify_stream"), streams, policy))]
        if streams
        else []
    )
    if original is not None and releases:
        verdicts = _compare_with_original(releases, verdicts, policy, original)
    verdicts.append(check_chain(releases, ledger))
    shapes = {release.shape for release in releases}
    beside = [place for shape, place in SEQUENCE_VERIFIERS.items() if shape in shapes]
    verdicts += [_run_safely(releases, partial(load_verifier(*place), releases, policy, ledger)) for place in beside]
    return VerificationResult(
        tuple(finding for verdict in verdicts for finding in verdict.findings),
        tuple(dict.fromkeys(note for verdict in verdicts for note in verdict.notes)),
        tuple(dict.fromkeys(claim for verdict in verdicts for claim in verdict.unchecked)),
        {key: figure for verdict in verdicts for key, figure in verdict.measured.items()},
    )


_SEPARATOR = " | "
_NOT_COMPARED = "comparison with the original (a release of this shape is compared while it is made)"


def _compare_with_original(
    releases: Sequence[Published], results: list[VerificationResult], policy: Policy, original: Input
) -> list[VerificationResult]:
    """The verdicts with that on the last release, or the stream, beside its input; what it shows is no longer unchecked."""
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
    shown = [replace(v, unchecked=tuple(c for c in v.unchecked if "needs the original" not in c)) for v in results]
    return [*shown, _run_safely(releases, compare)]


def _cast_views(table: pa.Table) -> pa.Table:
    """The input with its views of texts as texts: Arrow takes no rows of views."""
    views = [at for at, column in enumerate(table.columns) if pa.types.is_string_view(column.type)]
    for at in views:
        table = table.set_column(at, table.column_names[at], table.column(at).cast(pa.string()))
    return table


def _combine_columns(table: pa.Table, policy: Policy) -> pa.Table:
    """The input with the columns that the policy combines; an engine that knows them already has handed them in."""
    for name, column in policy.columns.items():
        parts = column.combine or ()
        if parts and (name in parts or name not in table.column_names) and set(parts) <= set(table.column_names):
            whole = pc.binary_join_element_wise(*(as_text(table[part]).fill_null("") for part in parts), _SEPARATOR)
            table = table.drop_columns(list(parts)).append_column(name, whole)
    return table


def _run_safely(releases: Sequence[Published], verifier: Callable[[], VerificationResult]) -> VerificationResult:
    """A verdict. Files of anybody may lack what every release of ours has: that refutes them, and is no bug of the judge."""
    try:
        return verifier()
    except UnreadableClaimError:
        return VerificationResult((Finding("every claim can be read", holds=False),))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException):
        if all(release.manifest is None and release.stream_file is None for release in releases):
            raise
        return VerificationResult((Finding("tables and documents have the form of their shape", holds=False),))


def _verify_one(release: Published, policy: Policy) -> VerificationResult:
    place = VERIFIERS.get(release.shape)
    if release.shape == "stream":
        verdict = VerificationResult(())  # its parts are judged together
    elif place is None:
        verdict = VerificationResult((Finding("the shape of the release is known", holds=False),))
    else:
        verdict = _run_safely([release], partial(load_verifier(*place), release, policy))
    findings = list(verdict.findings)
    if release.shape != "generalized" and (demands := policy.privacy.overall):  # of all classes; others have none
        findings.append(none_of("what the policy asks of all classes together", len(demands), ", ".join(demands)))
    if not release.no_manifest:
        findings[:0] = [
            none_of("files are as they were released", release.altered_files),
            *check_closed_lists(release, policy),
        ]
    notes = list(verdict.notes)
    if release.policy_hash is not None and release.policy_hash != policy.hash:
        notes.append("The release was made under another policy; it is judged by the one given.")
    if release.name:
        findings = [replace(f, where=f"{release.name}{': ' if f.where else ''}{f.where}") for f in findings]
    return VerificationResult(tuple(findings), tuple(notes), verdict.unchecked, verdict.measured)


_UNKNOWN = "number and predecessor in the store (give the ledger: --ledger STORE)"


def check_chain(releases: Sequence[Published], ledger: Ledger | None) -> VerificationResult:
    """The findings about releases that come from a store; nothing about others."""
    places = [place for release in releases if (place := _store_entry(release)) is not None]
    if not places:
        return VerificationResult(())
    broken = sum(not _follows(before, after) for before, after in pairwise(places))
    findings = [none_of("releases follow one another as their store numbers them", broken)] if len(places) > 1 else []
    if ledger is None or not len(ledger):
        return VerificationResult(
            tuple(findings), (), (_UNKNOWN,) if any(place.get("number") != 1 for place in places) else ()
        )
    digests = ledger.digests
    odd = sum(not _matches_ledger(place, digests) for place in places)
    return VerificationResult((*findings, none_of("number, digest and predecessor are those of the ledger", odd)))


def _store_entry(release: Published) -> Mapping[str, Any] | None:
    place = (release.manifest or {}).get("store")
    return place if isinstance(place, dict) else None


def _follows(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether one release of a publication may stand behind another; those of two publications may anyhow."""
    if any(before.get(word) != after.get(word) for word in ("publisher", "epoch")):
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
