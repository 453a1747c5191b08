"""`reticent token`: create, list and revoke access tokens of the service."""

from __future__ import annotations

import datetime as dt

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import PolicyError, StateError

app = options.OrderedGroup(help="Create, list and revoke access tokens of the service.")

service_store = click.option(
    "--store",
    default="reticent.db",
    envvar="RETICENT_STORE",
    show_envvar=True,
    help="Store of the service: a file or a URL.",
)


@app.command()
@click.argument("name", help="Name of the feed or person.")
@click.option(
    "--role",
    default="feed",
    help="Role: feed (send records), analyst (read releases), monitor (read metrics) or custodian (everything).",
)
@click.option(
    "--scope",
    multiple=True,
    help="Limit the token to kind:name (stream:ward7, series:patients, table:*, release:ID); default: no limit. Repeatable.",
)
@click.option("--days", type=click.FloatRange(min=0), default=365, help="Days until the token expires; 0: never.")
@service_store
@options.json
def create(name: str, role: str, scope: tuple[str, ...], days: float, store: str, json: bool) -> None:
    """Create a token and print it once. The store keeps only its hash."""
    from reticent.service.actor import act_as
    from reticent.service.tokens import OPERATOR, Role, Tokens
    from reticent.store import Store

    act_as(OPERATOR)
    if role not in set(Role):
        raise PolicyError("--role: unknown role.", hint=f"Choose one of: {', '.join(Role)}.")
    with Store.open(store) as database:
        text, token = Tokens(database).create(name, Role(role), days=days or None, scope=scope)
    say(f"A token with role {token.role}, {_until(token.expires)}. It is shown only this once:")
    if json:
        fields = {"id": token.id, "role": token.role, "expires": token.expires, "scope": list(token.scope)}
        emit({"token": text, **fields})
    else:
        click.echo(text)


@app.command("list")
@service_store
@options.json
def list_(store: str, json: bool) -> None:
    """List the tokens with id, role, name and expiry."""
    from reticent.service.tokens import Tokens
    from reticent.store import Store

    with Store.open(store, create=False) as database:
        tokens = Tokens(database).all()
    if json:
        fields = ("id", "role", "name", "expires", "scope")
        emit({"tokens": [{name: getattr(token, name) for name in fields} for token in tokens]})
        return
    for token in tokens:
        line = f"{token.id}  {token.role:<9}  {_until(token.expires):<20}  {token.name}  {' '.join(token.scope)}"
        click.echo(line.rstrip())


@app.command()
@click.argument("ident", help="The token's id.")
@service_store
def revoke(ident: str, store: str) -> None:
    """Revoke a token. A running server rejects it within seconds."""
    from reticent.service.actor import act_as
    from reticent.service.tokens import OPERATOR, Tokens
    from reticent.store import Store

    act_as(OPERATOR)
    with Store.open(store, create=False) as database:
        if not Tokens(database).revoke(ident):
            raise StateError("There is no token with this id.", hint="Run `reticent token list` to list the ids.")
    say("Revoked.")


def _until(expires: float | None) -> str:
    if expires is None:
        return "valid forever"
    return f"valid until {dt.datetime.fromtimestamp(expires, dt.UTC):%Y-%m-%d}"
