"""The front door in Python: the verbs of the command line, an Arrow table or a path in, a release out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
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
from reticent.verify import verify as judge
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
"""Whatever names a table on the command line, an Arrow table, or a frame of another library; these have no common type."""
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
    """Releases one table, once.

    Args:
        data: a table with exactly the columns of the policy, or whatever names one on the command line; under a policy with
            `tables` all of them by name, or whatever names them.
        policy: a policy, or the path of its file.
        method: instead of the policy's `table.method`.
        store: remembers who stood in which publication, and keeps the key of the veil, which cannot do without.
        seed: makes the release repeatable, for tests only.
        allow_republication: publish although some persons stand in other publications of the store; the release says so.
        watch: tells how far the search is, and may be cancelled from another thread.

    Raises:
        GuaranteeError: the policy cannot be met.
        UnwantedError: the watch was cancelled.
    """
    rules = policy_of(policy)
    if rules.tables is not None:
        if method is not None:
            raise PolicyError("Linked tables have one method.", hint="Leave out --method.")
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
    """A release that nobody sees, with what each column lost and what would help; no store and no ledger knows of it.

    Args:
        data: a table with exactly the columns of the policy, or whatever names one on the command line.
        policy: a policy, or the path of its file.
        method: instead of the policy's `table.method`.
        seed: makes it repeatable.

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
    """Recomputes every claim from the releases alone; with the original also what they cannot show.

    Args:
        releases: folders, files of JSON lines, `Release` values or anybody's tables; several in the order of publication.
        policy: a policy, or the path of its file.
        store: the store of the publication, whose ledger tells who stood in which group.
        original: the private input of a table's release: shows whether the claims of persons hold.
    """
    rules = policy_of(policy)
    if rules.tables is not None and original is not None:
        raise PolicyError(
            "Linked tables are compared with their input when they are released, not later.",
            hint="Leave --original out; `reticent audit --original` joins the tables before and after.",
        )
    source = None if original is None else Input(table_for_policy(original, rules))
    ledger = None if store is None else ledger_of(store)
    sources = sources_of(releases, rules)
    if not sources:
        raise PolicyError("There is no release to verify.", hint="Give a folder, a file, a release or a table.")
    return judge(sources, rules, ledger=ledger, original=source)


def audit(
    releases: ReleaseSource | Sequence[ReleaseSource],
    policy: Policy | Location,
    *,
    original: Data | None = None,
    store: Location | None = None,
    seed: int | None = None,
) -> Audit:
    """Verifies, measures and attacks releases.

    Args:
        releases: folders, files of JSON lines, `Release` values or anybody's tables; several in the order of publication.
        policy: a policy, or the path of its file.
        original: the private input, to count right guesses and the utility.
        store: the store of the publication, whose ledger tells who stood in which group.
        seed: makes the attacks repeatable.
    """
    from reticent.report import AuditInputs
    from reticent.report import audit as attack

    rules = policy_of(policy)
    ledger = None if store is None else ledger_of(store)
    if rules.tables is not None and original is not None:
        material = AuditInputs(tables=_tables(original, rules)[0], ledger=ledger, seed=seed)
    else:
        material = AuditInputs(
            original=None if original is None else table_for_policy(original, rules), ledger=ledger, seed=seed
        )
    return attack(sources_of(releases, rules), rules, material)


def risk(
    data: Data,
    *,
    quasi: Sequence[str] | str | None = None,
    sensitive: Sequence[str] | str | None = None,
    person: str | None = None,
) -> SinglingOut:
    """Says who could be singled out in a table as it is, before any policy exists.

    Args:
        data: a table, or whatever names one on the command line.
        quasi: the columns that others may know; guessed from names and values otherwise.
        sensitive: what nobody should learn; guessed otherwise.
        person: the column that names the same person across records; guessed otherwise.
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
    """The ledger of a store that holds one publication."""
    from reticent.store import Store

    with Store.open(store, create=False) as opened:
        names = opened.publishers()
        names = tuple(name for name in names if len(names) == 1 or opened.publisher_row(name)["entries"])
        if len(names) != 1:
            raise StateError(
                f"The store holds {len(names)} publications.",
                hint="Give the store of one evolving table, series or stream.",
            )
        return opened.ledger(names[0])


def policy_of(policy: Policy | Location) -> Policy:
    """A policy, or the one that a file holds."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | os.PathLike):
        raise PolicyError(
            f"The policy is of the type {type(policy).__name__}.",
            hint="Give reticent.Policy(columns=..., privacy=...), or the path of a policy file.",
        )
    return Policy.load(Path(policy))


def sources_of(releases: ReleaseSource | Sequence[ReleaseSource], policy: Policy) -> list[Path | Release | pa.Table]:
    """What was released by us stays where it is; a file of anybody is read as the table it holds."""
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
    """The one table of a policy, with what it calls missing taken out."""
    if policy.tables is not None:
        raise PolicyError("The policy is for several tables.", hint="Linked tables are released once, by anonymize.")
    return _load_table(data, policy)


def _load_table(data: Data, policy: Policy | None = None) -> pa.Table:
    """A table in memory or at a place, with what the policy calls missing taken out."""
    if isinstance(data, str | os.PathLike):
        return read_input(os.fspath(data), policy)
    return without_markers(table_of(data), policy.missing if policy is not None else ())


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """What a store keeps, loaded where it is used: a table released once needs no database."""
        if name in ("EvolvingTable", "Series"):
            return getattr(import_module("reticent.stateful"), name)
        raise AttributeError(f"module 'reticent.api' has no attribute {name!r}")
