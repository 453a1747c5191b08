"""`reticent store`: copies of a store, going on from one, looking at every row, and newer versions."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import PolicyError

app = options.OrderedGroup(help="Back up, restore, check and upgrade a store.")

store_argument = click.argument("store", type=options.PATH_OR_URL, metavar="STORE", help="The store's file.")


@app.command("backup")
@store_argument
@click.argument("target", type=options.PATH, help="A new file for the copy.")
def backup(store: str, target: Path) -> None:
    """Copy a store while it is in use."""
    from reticent.store.backup import backup as copy

    copy(store, target)
    say(f"Copied to {target}. To go on from it: reticent store restore {target} {store}")


@app.command("restore")
@click.argument("backup", type=options.PATH_OR_URL, help="What `store backup` made; in a server, the store itself.")
@store_argument
@click.option(
    "--published",
    multiple=True,
    help="What the world has seen: a release folder, a stream's file of lines, or NAME=NUMBER. Repeatable.",
)
@options.json
def restore(backup: str, store: str, published: tuple[str, ...], json: bool) -> None:
    """Go on from a backup, as a new generation that publishes nobody anew.

    A publication goes on only where --published (or the store's witness) shows what the world has seen of it.
    """
    from reticent.store.backup import restore as go_on

    outcomes = go_on(backup, store, published)
    for name, outcome in outcomes.items():
        replay = "reads its input again and sends only what is new" if outcome.lines else "goes on"
        say(f"  {name}: {'closed: ' + outcome.closed if outcome.closed else replay}")
    if not published and any(outcome.closed for outcome in outcomes.values()):
        say(
            "To go on with it, restore again and say what the world has seen: --published with the last release folder,"
        )
        say("the file of a stream's lines, or NAME=NUMBER (evolving=2: two publications).")
    if json:
        emit({name: {"closed": outcome.closed, "lines": outcome.lines} for name, outcome in outcomes.items()})


@app.command("check")
@store_argument
@options.json
def check(store: str, json: bool) -> None:
    """Look at every row of a store; exit code 5 when one is damaged."""
    from reticent.store import Store
    from reticent.store.backup import check as look

    with Store.open(store, create=False) as opened:
        rows, generation = look(opened), opened.epoch
    say(f"Sound: {sum(rows.values()):,} rows, generation {generation}.")
    if json:
        emit({"epoch": generation, "rows": rows})


@app.command("erase")
@options.store
@click.argument("publication", nargs=-1, help="Publications to erase, as `reticent ledger` names them.")
@click.option(
    "--dead-letters",
    type=click.FloatRange(min=0),
    help="Erase records that could not be released and were there at a call this many days ago; 0: all.",
)
def erase(store: str, publication: tuple[str, ...], dead_letters: float | None) -> None:
    """Erase publications or dead letters for good, in the file and its log.

    A publication that was erased is closed; its persons stay known to the ledger, as keyed hashes. Backups keep what they have.
    """
    from reticent.store import Store
    from reticent.store.erase import erase as forget
    from reticent.store.erase import erase_dead_letters

    if not publication and dead_letters is None:
        raise PolicyError("Erase what?", hint="Name publications, or give --dead-letters DAYS.")
    with Store.open(store, create=False) as opened:
        for name in publication:
            forget(opened, name)
            say(f"{name} is erased, and closed.")
        if dead_letters is not None:
            say(f"{erase_dead_letters(opened, dead_letters):,} dead letters are erased.")


@app.command("key")
@click.argument("file", type=options.PATH, help="A new file; keep it apart from the store.")
def key(file: Path) -> None:
    """Make a key file for an encrypted store, readable by you alone."""
    from reticent.store.keys import FILE, new_key

    new_key(file)
    say(
        f"A fresh key is in {file}. Stores that are begun with {FILE}={file} are encrypted; without the key they are lost."
    )


@app.command("rekey")
@options.store
@click.option("--to", type=options.EXISTING_PATH, help="The key file from now on.")
@click.option("--passphrase", is_flag=True, help="Ask for a passphrase from now on.")
@click.option("--decrypt", is_flag=True, help="Leave the store unencrypted.")
def rekey(store: str, to: Path | None, passphrase: bool, decrypt: bool) -> None:
    """Encrypt a store, or write it anew under another key; nobody may use it meanwhile.

    The present key is the one that RETICENT_STORE_KEY or RETICENT_STORE_PASSPHRASE names. Backups from before keep their key.
    """
    from reticent.store.keys import Key
    from reticent.store.rekey import rekey as write_anew

    if (to is not None) + passphrase + decrypt != 1:
        raise PolicyError("Which key?", hint="Give one of --to FILE, --passphrase and --decrypt.")
    new = Key.from_file(to) if to else None
    if passphrase:
        words = click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        new = Key.from_passphrase(words)
    write_anew(store, new)
    say("The store is not encrypted now." if new is None else "The store opens with the new key only; make a backup.")
