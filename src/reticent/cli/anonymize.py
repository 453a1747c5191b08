"""`reticent anonymize`: release one table, once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import describe, emit, say, search_progress, show_progress, summary
from reticent.errors import PolicyError

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy


@click.command()
@options.data
@options.policy_file
@options.output_folder
@click.option("--method", help="Method to use instead of table.method in the policy.")
@click.option(
    "--store",
    type=options.PATH_OR_URL,
    help="Store (file or URL) that records who was released and keeps the veil key.",
)
@options.allow_republication
@click.option(
    "--draft", is_flag=True, help="Publish nothing; write the figures of a trial run to the folder for comparison."
)
@click.option(
    "--on-disk",
    is_flag=True,
    help="Process a Parquet file larger than memory with DuckDB (methods optimal, mondrian, local).",
)
@click.option("--memory", default="2GB", help="Memory limit of DuckDB with --on-disk.")
@options.format
@options.seed
@options.json
def anonymize(
    data: str,
    policy: Path,
    output: Path,
    method: str | None,
    store: str | None,
    allow_republication: bool,
    draft: bool,
    on_disk: bool,
    memory: str,
    form: str,
    seed: int | None,
    json: bool,
) -> None:
    """Release one table, once.

    Reticent transforms the table to meet the policy, verifies the release and writes it. If the policy cannot be met, it writes nothing.
    With --draft it reports the information loss and possible improvements, and records nothing in a store or ledger.
    """
    if on_disk:
        _on_disk(data, policy, output, method, memory, plain=store is None and seed is None and not draft, json=json)
        return
    if draft:
        _draft(data, policy, output, method, seed, json=json)
        return
    from reticent import _core
    from reticent.api import anonymize as release_table
    from reticent.release.change_summary import column_changes, describe_changes

    start = time.perf_counter()
    table, rules = load_inputs(data, policy, output)
    if store is not None:
        from reticent.publication.publication import refuse_unknown_siblings
        from reticent.store import Store

        with Store.open(store) as opened:
            refuse_unknown_siblings(output, opened)
    token = _core.table.CancellationToken()
    with show_progress("Searching for the best release", search_progress(token)):
        release = release_table(
            table,
            rules,
            method=method,
            store=store,
            seed=seed,
            allow_republication=allow_republication,
            cancellation=token,
        )
    columns = [] if isinstance(table, str) else column_changes(release, table, rules)
    del table
    with show_progress("Writing"):
        release.to_dir(output, format=form)
    seconds = time.perf_counter() - start
    describe(release, seconds)
    for line in describe_changes(release, columns, rules):
        say(f"  {line}")
    from reticent.release.wording import REPEATED_PERSONS

    for word in release.guarantee.not_covered:
        if word.startswith(REPEATED_PERSONS):
            say(f"WARNING: {word}.")
    say(f"Verified and written to {output}.")
    if json:
        emit(summary(release, seconds) | {"columns": [one.to_dict() for one in columns]})


def _on_disk(
    data: str, policy: Path, output: Path, method: str | None, memory: str, *, plain: bool, json: bool
) -> None:
    from reticent.connectors.duck import anonymize as release_file
    from reticent.policy import Policy
    from reticent.policy.check import check

    if not plain:
        raise PolicyError(
            "--on-disk cannot be combined with --store, --draft or --seed.",
            hint="Remove these options, or remove --on-disk.",
        )
    start = time.perf_counter()
    rules = Policy.load(policy).with_method("table", method)
    check(rules)
    with show_progress("Counting, searching, writing and verifying"):
        release = release_file(data, rules, output, memory=memory)
    seconds = time.perf_counter() - start
    describe(release, seconds)
    say(f"Verified and written to {output}.")
    if json:
        emit(summary(release, seconds))


def _draft(data: str, policy: Path, output: Path, method: str | None, seed: int | None, *, json: bool) -> None:
    from reticent.cli.drafts import save_draft
    from reticent.publication.draft import make_draft
    from reticent.release.change_summary import describe_changes

    start = time.perf_counter()
    table, rules = load_inputs(data, policy, None)
    if isinstance(table, str):
        raise PolicyError("Linked tables do not support drafts.", hint="Remove --draft.")
    with show_progress("Searching for the best release and for improvements"):
        draft = make_draft(table, rules, method=method, seed=seed)
    seconds = time.perf_counter() - start
    describe(draft.release, seconds, "would be released")
    for line in describe_changes(draft.release, draft.columns, rules):
        say(f"  {line}")
    for one in draft.alternatives:
        say(f"  Possible improvement: {one.sentence}.")
    number = save_draft(output, draft, rules, str(policy))
    say(
        f"Draft {number} written; nothing was published. Compare: reticent drafts {output}. To publish, remove --draft."
    )
    if json:
        emit(summary(draft.release, seconds) | {"draft": number} | draft.to_dict())


def load_inputs(
    data: str, policy: str | Path, output: str | Path | None, kind: str = "table", method: str | None = None
) -> tuple[pa.Table | str, Policy]:
    """Read the policy and the data, and refuse invalid input before any long work.

    Linked tables are not read here: the data argument is returned unchanged.
    """
    from reticent.connectors.inputs import read_input
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.release.folder import refuse_overwrite

    rules = Policy.load(policy).with_method(kind, method)
    check(rules)
    if output is not None:
        refuse_overwrite(Path(output))
    if rules.tables is not None:
        return data, rules
    with show_progress("Reading"):
        return read_input(data, rules), rules
