"""The gate: nothing leaves that the judge has refuted, beside everything the same publication gave out before.

Guarantee: what passes verifies as `reticent.verify.verify` says, with all earlier releases and the ledger in view; what does not
    pass is a GuaranteeError, for every kind and every caller. There is no way around it and no switch.
Not covered: what the judge cannot see, see `reticent.verify.verify`.
Cost: the judge's; earlier releases were judged by themselves when they were published, and are only laid side by side here.
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
    """A release that the judge has let through, its bytes, and what the ledger will say of it."""

    release: Release
    result: VerificationResult
    base_entry: LedgerEntry
    members: Members
    events: ShownEvents | None = None
    digests: Mapping[int, str] = field(default_factory=dict)
    """Of the releases before it by their numbers, and of itself once it is kept."""

    @cached_property
    def payload(self) -> bytes:
        """The bytes for a store; who has none is spared them."""
        return to_bytes(self.release)

    @cached_property
    def entry(self) -> LedgerEntry:
        """What the ledger says of it, with the digest of its bytes."""
        if self.base_entry.digest:
            return self.base_entry
        return replace(self.base_entry, digest=hashlib.sha256(self.payload).hexdigest())

    def pack(self) -> VerifiedRelease:
        """With its bytes and their digest made: before a transaction begins, which others wait for."""
        assert self.entry.digest  # noqa: S101 - made by asking
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
        """Stores the bytes, the ledger's entry and the persons; from here on it is published. Its number is that of the store."""
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


def pass_gate(  # noqa: PLR0913 - what the judge and the ledger need
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
    """Asks the judge about a release beside all earlier ones.

    Args:
        release: what is to be published.
        policy: what must hold.
        kind: what the publication is; the release's own word is not taken for it.
        earlier: everything this publication gave out before, in order.
        ledger: who stood in which group of the earlier ones.
        members: who stands in which group of this one.
        sights: what it shows of each person, where a house keys it; for the ledger of the store.
        original: what it was made from; claims of persons are checked against it, and it goes no further.
        not_covered: what its guarantee leaves open beside what its method says.

    Raises:
        GuaranteeError: a claim is refuted; nothing was published.
    """
    guarantee = release.guarantee
    release = replace(release, guarantee=replace(guarantee, not_covered=(*guarantee.not_covered, *not_covered)))
    seen = read_release(release, "")
    # An engine may give texts as numbers with their words; what goes out is what the judge reads.
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
        digest="",  # of bytes that are made when somebody keeps them
    )
    digests = ledger.digests
    ledger.record(entry, *members)
    source = None if original is None else Input(original.table, original.source_rows)
    verdict = verify([*earlier, seen], policy, ledger=ledger, kind=kind, fresh=1, original=source)
    require_verification(verdict, has_earlier=bool(earlier))
    return VerifiedRelease(release, verdict, entry, members, events, digests)


def require_verification(result: VerificationResult, *, has_earlier: bool = False) -> None:
    """Raises when the judge has refuted a claim."""
    if result.holds:
        return
    claims = ", ".join(dict.fromkeys(finding.claim for finding in result.refuted)) or "nothing could be checked"
    hint = (
        "Beside the earlier releases it would tell too much: use a method that is made for several of them."
        if has_earlier
        else "Ask for less in the policy, or use another method."
    )
    raise GuaranteeError(f"The judge refuted the release ({claims}); nothing was published.", hint=hint)
