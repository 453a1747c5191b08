"""`reticent token`: who may use the service, and for what."""

from __future__ import annotations

import datetime as dt

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import PolicyError, StateError

app = options.OrderedGroup(help="Make, list and revoke tokens of the service.")

service_store = click.option(
    "--store",
    default="reticent.db",
    envvar="RETICENT_STORE",
    show_envvar=True,
    help="The service's store: a path or a URL.",
)


@app.command()
@click.argument("name", help="Whose token it is: a feed or a person.")
@click.option(
    "--role",
    default="feed",
    help="feed (push only), analyst (read releases), monitor (figures only) or custodian (all).",
)
@click.option(
    "--scope",
    multiple=True,
    help="Only for this source, as kind:name (stream:ward7, series:patients, table:*, release:ID); may be repeated. Default: for all.",
)
@click.option("--days", type=click.FloatRange(min=0), default=365, help="Valid for so many days; 0 for ever.")
@service_store
@options.json
def create(name: str, role: str, scope: tuple[str, ...], days: float, store: str, json: bool) -> None:
    """Make a token and print it; it is shown this once, the store keeps a hash only."""
    from reticent.service.actor import act_as
    from reticent.service.tokens import OPERATOR, Role, Tokens
    from reticent.store import Store

    act_as(OPERATOR)
    if role not in set(Role):
        raise PolicyError("There is no such role.", hint=f"Choose one of: {', '.join(Role)}.")
    with Store.open(store) as database:
        text, token = Tokens(database).create(name, Role(role), days=days or None, scope=scope)
    say(f"A token of role {token.role}, {_until(token.expires)}. It is shown only now:")
    if json:
        fields = {"id": token.id, "role": token.role, "expires": token.expires, "scope": list(token.scope)}
        emit({"token": text, **fields})
    else:
        click.echo(text)


@app.command("list")
@service_store
@options.json
def list_(store: str, json: bool) -> None:
    """List tokens: id, role, name and expiry."""
    from reticent.service.tokens import Tokens
    from reticent.store import Store

    with Store.open(store, create=False) as database:
        tokens = Tokens(database).all()
    if json:
        shown = ("id", "role", "name", "expires", "scope")
        emit({"tokens": [{name: getattr(token, name) for name in shown} for token in tokens]})
        return
    for token in tokens:
        line = f"{token.id}  {token.role:<9}  {_until(token.expires):<20}  {token.name}  {' '.join(token.scope)}"
        click.echo(line.rstrip())


@app.command()
@click.argument("ident", help="The token's id.")
@service_store
def revoke(ident: str, store: str) -> None:
    """Revoke a token; a running server follows within seconds."""
    from reticent.service.actor import act_as
    from reticent.service.tokens import OPERATOR, Tokens
    from reticent.store import Store

    act_as(OPERATOR)
    with Store.open(store, create=False) as database:
        if not Tokens(database).revoke(ident):
            raise StateError("There is no such token.", hint="See reticent token list.")
    say("Revoked.")


def _until(expires: float | None) -> str:
    if expires is None:
        return "valid for ever"
    return f"valid until {dt.datetime.fromtimestamp(expires, dt.UTC):%Y-%m-%d}"
