"""The Python API: the same verbs as the command line, with a table or a path as input and a release as result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from reticent.connectors.inputs import read_input
from reticent.errors import PolicyError, StateError
from reticent.frames import table_of
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.policy.spec import unknown_word_message
from reticent.publication import table
from reticent.release import Release
from reticent.verify import verify as verify_releases
from reticent.verify.original.persons import Input
from reticent.verify.published import is_stream_file, text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent._core.table import CancellationToken
    from reticent.audit.risk.singling_out import SinglingOut
    from reticent.publication.draft import Draft
    from reticent.release import Ledger
    from reticent.report import Audit
    from reticent.verify import VerificationResult

Location: TypeAlias = str | os.PathLike[str]
Data: TypeAlias = Location | Any
"""A path or URL as on the command line, an Arrow table, or a frame of another library; these have no common type."""
ReleaseSource: TypeAlias = Data | Release


def anonymize(
    data: Data,
    policy: Policy | Location,
    *,
    method: str | None = None,
    store: Location | None = None,
    seed: int | None = None,
    allow_republication: bool = False,
    cancellation: CancellationToken | None = None,
) -> Release:
    """Release one table, once.

    Args:
        data: a table with exactly the columns of the policy, or its path or URL; for a policy with `tables` a mapping of
            names to tables, or their path or URL.
        policy: a policy, or the path of its file.
        method: the method to use instead of the policy's `table.method`.
        store: the path or URL of a store, which records the persons and keeps the veil key; required for the veil.
        seed: makes the release repeatable, for tests only.
        allow_republication: allow people who were already released from this store; the release records this.
        cancellation: reports the progress of the search; another thread may cancel it.

    Raises:
        GuaranteeError: the policy cannot be met.
        UnwantedError: the search was cancelled.
    """
    rules = policy_of(policy)
    if rules.tables is not None:
        if method is not None:
            raise PolicyError("Linked tables have only one method.", hint="Remove --method.")
        return _anonymize_tables(data, rules, store, seed, allow_republication=allow_republication)
    records = table_for_policy(data, rules)
    if store is None:
        return table.publish(records, rules, method=method, seed=seed, cancellation=cancellation).release
    from reticent.publication import single
    from reticent.store import Store

    with Store.open(store) as opened:
        return single.publish(
            records,
            rules,
            opened,
            method=method,
            seed=seed,
            allow_republication=allow_republication,
            cancellation=cancellation,
        )


def draft(data: Data, policy: Policy | Location, *, method: str | None = None, seed: int | None = None) -> Draft:
    """Make a trial release, with the loss of each column and possible improvements. It leaves no trace in a store or ledger.

    Args:
        data: a table with exactly the columns of the policy, or its path or URL.
        policy: a policy, or the path of its file.
        method: the method to use instead of the policy's `table.method`.
        seed: makes the draft repeatable.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    from reticent.publication.draft import make_draft

    rules = policy_of(policy)
    return make_draft(table_for_policy(data, rules), rules, method=method, seed=seed)


def verify(
    releases: ReleaseSource | Sequence[ReleaseSource],
    policy: Policy | Location,
    *,
    store: Location | None = None,
    original: Data | None = None,
) -> VerificationResult:
    """Recompute every claim from the releases only; with the original, also the claims about persons.

    Args:
        releases: folders, files of JSON lines, `Release` values or tables from any source; several in the order of publication.
        policy: a policy, or the path of its file.
        store: the store of the publication, whose ledger has each person's group.
        original: the private input of a table's release, to check the claims about persons.
    """
    rules = policy_of(policy)
    if rules.tables is not None and original is not None:
        raise PolicyError(
            "Linked tables cannot be compared with their input after the release.",
            hint="Remove --original, or use `reticent audit --original`, which joins the tables before and after.",
        )
    source = None if original is None else Input(table_for_policy(original, rules))
    ledger = None if store is None else ledger_of(store)
    sources = sources_of(releases, rules)
    if not sources:
        raise PolicyError("There is no release to verify.", hint="Give a folder, a file, a release or a table.")
    return verify_releases(sources, rules, ledger=ledger, original=source)


def audit(
    releases: ReleaseSource | Sequence[ReleaseSource],
    policy: Policy | Location,
    *,
    original: Data | None = None,
    store: Location | None = None,
    seed: int | None = None,
) -> Audit:
    """Verify, measure and attack releases.

    Args:
        releases: folders, files of JSON lines, `Release` values or tables from any source; several in the order of publication.
        policy: a policy, or the path of its file.
        original: the private input, to count correct guesses and measure utility.
        store: the store of the publication, whose ledger has each person's group.
        seed: makes the attacks repeatable.
    """
    from reticent.report import AuditInputs
    from reticent.report import audit as attack

    rules = policy_of(policy)
    ledger = None if store is None else ledger_of(store)
    if rules.tables is not None and original is not None:
        inputs = AuditInputs(tables=_tables(original, rules)[0], ledger=ledger, seed=seed)
    else:
        inputs = AuditInputs(
            original=None if original is None else table_for_policy(original, rules), ledger=ledger, seed=seed
        )
    return attack(sources_of(releases, rules), rules, inputs)


def risk(
    data: Data,
    *,
    quasi: Sequence[str] | str | None = None,
    sensitive: Sequence[str] | str | None = None,
    person: str | None = None,
) -> SinglingOut:
    """Measure how many people could be singled out in a table, without a policy.

    Args:
        data: a table, or its path or URL.
        quasi: the columns that an attacker may know; by default guessed from names and values.
        sensitive: the columns to protect; by default guessed.
        person: the column that identifies the person; by default guessed.
    """
    from reticent.audit.risk.singling_out import singling_out
    from reticent.policy.guess import guess, guess_person

    records = _load_table(data)
    guesses = guess(records)
    quasi, sensitive = ([names] if isinstance(names, str) else names for names in (quasi, sensitive))
    named = [*(quasi or ()), *(sensitive or ()), *([person] if person else ())]
    for name in named:
        if name not in records.column_names:
            raise PolicyError(f"The data has no such column: {unknown_word_message(name, tuple(records.column_names))}")
    person = person or guess_person(guesses)
    roles = {one.column: one.role for one in guesses} | dict.fromkeys(sensitive or (), "sensitive")
    known = quasi or [name for name, role in roles.items() if role == "quasi" and name != person]
    private = sensitive or [name for name, role in roles.items() if role == "sensitive" and name not in known]
    return singling_out(text_table(records), known, sensitive=private, person=person)


def ledger_of(store: Location) -> Ledger:
    """Return the ledger of a store with one publication."""
    from reticent.store import Store

    with Store.open(store, create=False) as opened:
        names = opened.publishers()
        names = tuple(name for name in names if len(names) == 1 or opened.publisher_row(name)["entries"])
        if len(names) != 1:
            raise StateError(
                f"The store has {len(names)} publications, but exactly one is needed.",
                hint="Give the store of a single evolving table, series or stream.",
            )
        return opened.ledger(names[0])


def policy_of(policy: Policy | Location) -> Policy:
    """Return a policy, loaded if its path is given."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | os.PathLike):
        raise PolicyError(
            f"The policy has the type {type(policy).__name__}.",
            hint="Give reticent.Policy(columns=..., privacy=...), or the path of a policy file.",
        )
    return Policy.load(Path(policy))


def sources_of(releases: ReleaseSource | Sequence[ReleaseSource], policy: Policy) -> list[Path | Release | pa.Table]:
    """Return releases of Reticent as they are given, and other files as tables."""
    return [_source(source, policy) for source in (releases if isinstance(releases, list | tuple) else [releases])]


def _source(release: ReleaseSource, policy: Policy) -> Path | Release | pa.Table:
    if isinstance(release, Release):
        return release
    if isinstance(release, str | os.PathLike) and ((path := Path(release)).is_dir() or is_stream_file(path)):
        return path
    return _load_table(release, policy)


def _anonymize_tables(
    data: Any, policy: Policy, store: Location | None, seed: int | None, *, allow_republication: bool
) -> Release:
    from reticent.publication import linked, single
    from reticent.store import Store

    tables, standard = _tables(data, policy)
    if store is None:
        return linked.publish(tables, policy, seed=seed, standard=standard).release
    with Store.open(store) as opened:
        return single.publish_tables(
            tables, policy, opened, seed=seed, allow_republication=allow_republication, standard=standard
        )


def _tables(data: Any, policy: Policy) -> tuple[Mapping[str, pa.Table], dict[str, Any] | None]:
    if isinstance(data, Mapping):
        return {name: _load_table(part, policy) for name, part in data.items()}, None
    from reticent.connectors.linked import read_tables

    return read_tables(os.fspath(data), policy)


def table_for_policy(data: Data, policy: Policy) -> pa.Table:
    """Load the single table of a policy, with its missing markers as nulls."""
    if policy.tables is not None:
        raise PolicyError("The policy is for linked tables.", hint="Use anonymize, which releases linked tables once.")
    return _load_table(data, policy)


def _load_table(data: Data, policy: Policy | None = None) -> pa.Table:
    """Load a table from memory, a path or a URL, with the policy's missing markers as nulls."""
    if isinstance(data, str | os.PathLike):
        return read_input(os.fspath(data), policy)
    return without_markers(table_of(data), policy.missing if policy is not None else ())
