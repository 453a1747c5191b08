"""`reticent store`: copies of a store, going on from one, looking at every row, and newer versions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Back up, restore, check and upgrade a store.",
)

Place = Annotated[str, typer.Argument(metavar="STORE", help="The store's file.", show_default=False)]
Anywhere = Annotated[str, typer.Argument(metavar="STORE", help="A file, or a postgresql:// URL.", show_default=False)]


@app.command("backup")
def backup(store: Place, target: Annotated[Path, typer.Argument(help="A new file for the copy.")]) -> None:
    """Copy a store while it is in use."""
    from reticent.cli.output import say
    from reticent.store.backup import backup as copy

    copy(store, target)
    say(f"Copied to {target}. To go on from it: reticent store restore {target} {store}")


@app.command("restore")
def restore(
    backup: Annotated[
        str, typer.Argument(help="What `store backup` made; in a server, the store itself.", show_default=False)
    ],
    store: Place,
    published: Annotated[
        list[str] | None,
        typer.Option(
            help="What the world has seen: a release folder, a stream's file of lines, or NAME=NUMBER. Repeatable.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Go on from a backup, as a new generation that publishes nobody anew.

    A publication goes on only where --published (or the store's witness) shows what the world has seen of it.
    """
    from reticent.cli.output import emit, say
    from reticent.store.backup import restore as go_on

    outcomes = go_on(backup, store, published or [])
    for name, outcome in outcomes.items():
        replay = "reads its input again and sends only what is new" if outcome.lines else "goes on"
        say(f"  {name}: {'closed: ' + outcome.closed if outcome.closed else replay}")
    if json:
        emit({name: {"closed": outcome.closed, "lines": outcome.lines} for name, outcome in outcomes.items()})


@app.command("check")
def check(store: Place, json: Json = False) -> None:
    """Look at every row of a store; exit code 5 when one is damaged."""
    from reticent.cli.output import emit, say
    from reticent.store import Store
    from reticent.store.backup import check as look

    with Store.open(store, create=False) as opened:
        rows, generation = look(opened), opened.generation
    say(f"Sound: {sum(rows.values()):,} rows, generation {generation}.")
    if json:
        emit({"generation": generation, "rows": rows})


@app.command("erase")
def erase(
    store: Anywhere,
    publication: Annotated[
        list[str] | None, typer.Argument(help="Publications to erase, as `reticent ledger` names them.")
    ] = None,
    dead_letters: Annotated[
        float | None,
        typer.Option(
            help="Erase records that could not be released and were there at a call this many days ago; 0: all.",
            show_default=False,
            min=0,
        ),
    ] = None,
) -> None:
    """Erase publications or dead letters for good, in the file and its log.

    A publication that was erased is closed; its persons stay known to the ledger, as keyed hashes. Backups keep what they have.
    """
    from reticent.cli.output import say
    from reticent.errors import PolicyError
    from reticent.store import Store
    from reticent.store.erase import erase as forget
    from reticent.store.erase import erase_dead_letters

    if not publication and dead_letters is None:
        raise PolicyError("Erase what?", hint="Name publications, or give --dead-letters DAYS.")
    with Store.open(store, create=False) as opened:
        for name in publication or ():
            forget(opened, name)
            say(f"{name} is erased, and closed.")
        if dead_letters is not None:
            say(f"{erase_dead_letters(opened, dead_letters):,} dead letters are erased.")


@app.command("key")
def key(file: Annotated[Path, typer.Argument(help="A new file; keep it apart from the store.")]) -> None:
    """Make a key file for an encrypted store, readable by you alone."""
    from reticent.cli.output import say
    from reticent.store.keys import FILE, new_key

    new_key(file)
    say(
        f"A fresh key is in {file}. Stores that are begun with {FILE}={file} are encrypted; without the key they are lost."
    )


@app.command("rekey")
def rekey(
    store: Anywhere,
    to: Annotated[
        Path | None, typer.Option("--to", help="The key file from now on.", show_default=False, exists=True)
    ] = None,
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Ask for a passphrase from now on.")] = False,
    decrypt: Annotated[bool, typer.Option("--decrypt", help="Leave the store unencrypted.")] = False,
) -> None:
    """Encrypt a store, or write it anew under another key; nobody may use it meanwhile.

    The present key is the one that RETICENT_STORE_KEY or RETICENT_STORE_PASSPHRASE names. Backups from before keep their key.
    """
    from reticent.cli.output import say
    from reticent.errors import PolicyError
    from reticent.store.keys import Key
    from reticent.store.rekey import rekey as write_anew

    if (to is not None) + passphrase + decrypt != 1:
        raise PolicyError("Which key?", hint="Give one of --to FILE, --passphrase and --decrypt.")
    new = Key.from_file(to) if to else None
    if passphrase:
        words = typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        new = Key.from_passphrase(words)
    write_anew(store, new)
    say("The store is not encrypted now." if new is None else "The store opens with the new key only; make a backup.")


@app.command("upgrade")
def upgrade(store: Place) -> None:
    """Bring a store of an older version to this one; back it up first."""
    from reticent.cli.output import say
    from reticent.store.backup import upgrade as bring
    from reticent.store.schema import VERSION

    before = bring(store)
    say(f"The store has schema {VERSION} now, it had {before}." if before != VERSION else "Nothing to do.")
