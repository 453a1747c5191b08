"""The gate: the verifier checks every release together with all earlier releases of the same publication.

Guarantee: a release that passes was verified by `reticent.verify.verify` with all earlier releases and the ledger, for an attacker
    who has them all. Otherwise the gate raises a GuaranteeError, for every kind and every caller. No option turns it off.
Not covered: what the verifier cannot see; see `reticent.verify.verify`.
Cost: one verification; earlier releases were verified when they were published and are only compared here.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from reticent.engine.base import Members, Original, ShownEvents
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.release import Kind, Ledger, LedgerEntry, Release
from reticent.release.codebook import with_codebook
from reticent.release.codec import to_bytes
from reticent.verify import verify
from reticent.verify.original.persons import Input
from reticent.verify.published import read_release

if TYPE_CHECKING:
    from reticent.arrays import UInt64s
    from reticent.publication.population import Population
    from reticent.publication.publication import TransactionHook
    from reticent.store import Transaction
    from reticent.verify.result import VerificationResult


@dataclass(frozen=True, repr=False)
class VerifiedRelease:
    """A release that passed the verifier, its bytes and its ledger entry."""

    release: Release
    result: VerificationResult
    base_entry: LedgerEntry
    members: Members
    events: ShownEvents | None = None
    digests: Mapping[int, str] = field(default_factory=dict)
    """Digests of the earlier releases by number, and of this release once it is stored."""

    @cached_property
    def payload(self) -> bytes:
        """The bytes for a store, computed on first use."""
        return to_bytes(self.release)

    @cached_property
    def entry(self) -> LedgerEntry:
        """The ledger entry with the digest of the bytes."""
        if self.base_entry.digest:
            return self.base_entry
        return replace(self.base_entry, digest=hashlib.sha256(self.payload).hexdigest())

    def pack(self) -> VerifiedRelease:
        """Compute the bytes and their digest now, before a transaction makes other processes wait."""
        assert self.entry.digest  # noqa: S101 - computes the cached property
        return self

    def keep(
        self,
        tx: Transaction,
        publisher: str,
        population: Population,
        persons: UInt64s,
        *,
        position: str | None = None,
        sent: bool = False,
        hook: TransactionHook | None = None,
    ) -> VerifiedRelease:
        """Store the bytes, the ledger entry and the persons: this publishes the release under the store's next number."""
        number = tx.put_outbox(publisher, "release", self.payload, position=position)
        entry = replace(self.entry, number=number + 1)
        tx.record_ledger(publisher, entry, *self.members)
        if sent:
            tx.confirm_delivery(publisher, number)
        population.record(tx, persons, self.events)
        kept = replace(self, base_entry=entry, digests={**self.digests, entry.number: entry.digest})
        if hook is not None:
            hook(tx, kept)
        return kept


def pass_gate(  # noqa: PLR0913 - the inputs of the verifier and the ledger
    release: Release,
    policy: Policy,
    kind: Kind,
    *,
    earlier: Sequence[Release] = (),
    ledger: Ledger | None = None,
    members: Members | None = None,
    original: Original | None = None,
    events: ShownEvents | None = None,
    not_covered: tuple[str, ...] = (),
) -> VerifiedRelease:
    """Verify a release together with all earlier releases of its publication.

    Args:
        release: the release to publish.
        policy: the policy that must hold.
        kind: the kind of the publication; the release is not trusted to state it.
        earlier: all earlier releases of this publication, in order.
        ledger: the persons of each group in the earlier releases.
        members: the persons of each group in this release.
        original: the input; claims about persons are checked against it, and it is not stored.
        events: what a keyed method shows of each person; for the ledger of the store.
        not_covered: additional statements of what the guarantee does not cover.

    Raises:
        GuaranteeError: the verifier refutes a claim; nothing was published.
    """
    guarantee = release.guarantee
    release = replace(release, guarantee=replace(guarantee, not_covered=(*guarantee.not_covered, *not_covered)))
    seen = read_release(release, "")
    # An engine may return dictionary-encoded texts. Publish exactly what the verifier reads.
    release = with_codebook(replace(release, tables=seen.raw), policy, seen.coded)
    seen = replace(seen, metadata=release.metadata)
    members = members or Members.empty()
    ledger = Ledger() if ledger is None else ledger
    entry = LedgerEntry(
        number=len(ledger) + 1,
        time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        policy_hash=policy.hash,
        method=release.method,
        records=release.records,
        digest="",  # computed with the bytes, when the release is stored
    )
    digests = ledger.digests
    ledger.record(entry, *members)
    source = None if original is None else Input(original.table, original.source_rows)
    result = verify([*earlier, seen], policy, ledger=ledger, kind=kind, fresh=1, original=source)
    require_verification(result, has_earlier=bool(earlier))
    return VerifiedRelease(release, result, entry, members, events, digests)


def require_verification(result: VerificationResult, *, has_earlier: bool = False) -> None:
    """Raise a GuaranteeError if the verifier refuted a claim."""
    if result.holds:
        return
    claims = ", ".join(dict.fromkeys(finding.claim for finding in result.refuted)) or "nothing could be checked"
    hint = (
        "Together with the earlier releases it would disclose too much. Use a method for repeated releases."
        if has_earlier
        else "Weaken the requirements in the policy, or use another method."
    )
    raise GuaranteeError(f"The verifier refuted the release ({claims}); nothing was published.", hint=hint)
