"""`reticent anonymize`: one table, once."""

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
@click.option("--method", help="Instead of the policy's table.method.")
@click.option(
    "--store",
    type=options.PATH_OR_URL,
    help="Remembers who was published, and keeps the key of the veil: a file or a URL.",
)
@options.allow_republication
@click.option("--draft", is_flag=True, help="Publish nothing: keep the figures in the folder, to be compared.")
@click.option(
    "--on-disk",
    is_flag=True,
    help="For a Parquet file larger than memory: DuckDB counts it; method optimal, mondrian or local.",
)
@click.option("--memory", default="2GB", help="What DuckDB may use, with --on-disk.")
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

    Meets the policy, verifies, then writes; or writes nothing and says why.
    With --draft it says what a release would lose and what would help; no store and no ledger knows of it.
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
    watch = _core.table.CancellationToken()
    with show_progress("Searching for the release", search_progress(watch)):
        release = release_table(
            table,
            rules,
            method=method,
            store=store,
            seed=seed,
            allow_republication=allow_republication,
            cancellation=watch,
        )
    columns = [] if isinstance(table, str) else column_changes(release, table, rules)
    del table
    with show_progress("Writing"):
        release.to_dir(output, format=form)
    seconds = time.perf_counter() - start
    describe(release, seconds)
    for line in describe_changes(release, columns, rules):
        say(f"  {line}")
    for word in release.guarantee.not_covered:
        if word.startswith("PERSONS"):
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
            "--on-disk goes without --store, --draft and --seed.", hint="Leave them out, or release it in memory."
        )
    start = time.perf_counter()
    rules = Policy.load(policy).with_method("table", method)
    check(rules)
    with show_progress("Counting, searching, writing and judging"):
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
        raise PolicyError("Linked tables have no drafts.", hint="Leave --draft out.")
    with show_progress("Searching for the release, and for what would help"):
        draft = make_draft(table, rules, method=method, seed=seed)
    seconds = time.perf_counter() - start
    describe(draft.release, seconds, "would be released")
    for line in describe_changes(draft.release, draft.columns, rules):
        say(f"  {line}")
    for one in draft.alternatives:
        say(f"  Would help: {one.sentence}.")
    number = save_draft(output, draft, rules, str(policy))
    say(f"Draft {number}: nothing was published. Compare: reticent drafts {output}. To publish, leave --draft out.")
    if json:
        emit(summary(draft.release, seconds) | {"draft": number} | draft.to_dict())


def load_inputs(
    data: str, policy: str | Path, output: str | Path | None, kind: str = "table", method: str | None = None
) -> tuple[pa.Table | str, Policy]:
    """Reads the policy and the data; refuses early what must be refused, before anything long begins.

    Linked tables are left to whoever releases them: the data comes back as it was named.
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
