"""`reticent store`: back up, restore, check, erase, encrypt and upgrade a store."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import PolicyError

app = options.OrderedGroup(help="Back up, restore, check, erase, encrypt or upgrade a store.")

store_argument = click.argument("store", type=options.PATH_OR_URL, metavar="STORE", help="Store: a file.")


@app.command("backup")
@store_argument
@click.argument("target", type=options.PATH, help="New file for the copy.")
def backup(store: str, target: Path) -> None:
    """Copy a store while it is in use."""
    from reticent.store.backup import backup as copy

    copy(store, target)
    say(f"Copied to {target}. To restore it: reticent store restore {target} {store}")


@app.command("restore")
@click.argument(
    "backup", type=options.PATH_OR_URL, help="File from `store backup`; for a database server, the URL of the store."
)
@store_argument
@click.option(
    "--published",
    multiple=True,
    help="What was published: a release folder, a file with a stream's lines, or NAME=NUMBER. Repeatable.",
)
@options.json
def restore(backup: str, store: str, published: tuple[str, ...], json: bool) -> None:
    """Restore a store from a backup, without publishing the same people again.

    A publication can continue only if --published (or the store's rollback marker) shows what was published after the backup.
    """
    from reticent.store.backup import restore as restore_store

    outcomes = restore_store(backup, store, published)
    for name, outcome in outcomes.items():
        replay = "reads its input again and sends only what is new" if outcome.lines else "can continue"
        say(f"  {name}: {'closed: ' + outcome.closed if outcome.closed else replay}")
    if not published and any(outcome.closed for outcome in outcomes.values()):
        say("To reopen a closed publication, restore again with --published: the last release folder, the file with a")
        say("stream's lines, or NAME=NUMBER (evolving=2: two publications).")
    if json:
        emit({name: {"closed": outcome.closed, "lines": outcome.lines} for name, outcome in outcomes.items()})


@app.command("check")
@store_argument
@options.json
def check(store: str, json: bool) -> None:
    """Check every row of a store. The exit code is 5 if the store is corrupt."""
    from reticent.store import Store
    from reticent.store.backup import check as check_store

    with Store.open(store, create=False) as opened:
        rows, epoch = check_store(opened), opened.epoch
    say(f"The store is intact: {sum(rows.values()):,} rows, epoch {epoch}.")
    if json:
        emit({"epoch": epoch, "rows": rows})


@app.command("erase")
@options.store
@click.argument("publication", nargs=-1, help="Names of publications to erase; see `reticent ledger`.")
@click.option(
    "--dead-letters",
    type=click.FloatRange(min=0),
    help="Erase dead letters that a call at least this many days ago has seen; 0: all.",
)
def erase(store: str, publication: tuple[str, ...], dead_letters: float | None) -> None:
    """Permanently erase publications or dead letters from the store's files.

    An erased publication is closed. The ledger keeps its persons as keyed hashes. Backups are not changed.
    """
    from reticent.store import Store
    from reticent.store.erase import erase as erase_publication
    from reticent.store.erase import erase_dead_letters

    if not publication and dead_letters is None:
        raise PolicyError("Nothing to erase was named.", hint="Name publications, or give --dead-letters DAYS.")
    with Store.open(store, create=False) as opened:
        for name in publication:
            erase_publication(opened, name)
            say(f"{name} was erased and closed.")
        if dead_letters is not None:
            say(f"{erase_dead_letters(opened, dead_letters):,} dead letters were erased.")


@app.command("key")
@click.argument("file", type=options.PATH, help="New file for the key. Keep it apart from the store.")
def key(file: Path) -> None:
    """Create a key file for encrypted stores that only you can read."""
    from reticent.store.keys import FILE, new_key

    new_key(file)
    say(
        f"A new key is in {file}. Stores created with {FILE}={file} are encrypted. If you lose the key, you lose the stores."
    )


@app.command("rekey")
@options.store
@click.option("--to", type=options.EXISTING_PATH, help="The new key file.")
@click.option("--passphrase", is_flag=True, help="Ask for a new passphrase.")
@click.option("--decrypt", is_flag=True, help="Remove the encryption.")
def rekey(store: str, to: Path | None, passphrase: bool, decrypt: bool) -> None:
    """Encrypt a store, change its key, or decrypt it. No other process may use it meanwhile.

    The current key comes from RETICENT_STORE_KEY or RETICENT_STORE_PASSPHRASE. Earlier backups keep their key.
    """
    from reticent.store.keys import Key
    from reticent.store.rekey import rekey as rewrite

    if (to is not None) + passphrase + decrypt != 1:
        raise PolicyError(
            "The new key is missing or ambiguous.", hint="Give one of --to FILE, --passphrase and --decrypt."
        )
    new = Key.from_file(to) if to else None
    if passphrase:
        words = click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        new = Key.from_passphrase(words)
    rewrite(store, new)
    say(
        "The store is no longer encrypted."
        if new is None
        else "The store now opens with the new key only. Make a backup."
    )
