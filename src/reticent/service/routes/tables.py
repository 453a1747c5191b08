"""Tables: upload a table, get a guessed policy, release the table as a job."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from reticent.errors import DataError
from reticent.policy.guess import SAMPLE, guess, guess_missing_markers, guess_person, settings_of
from reticent.service.access import AuthenticatedRoute
from reticent.service.documents import new_id, now
from reticent.service.hub import Hub
from reticent.service.routes.bodies import Job, PolicyBody, errors, raw_body
from reticent.service.routes.common import CUSTODIAN, HubDependency, Ident, in_thread
from reticent.service.routes.feeds import check_content_type
from reticent.service.uploads import CONTENT_TYPES, head_of, read_upload
from reticent.store import Transaction

MAX_COLUMNS = 2_000
"""Most columns of a table; wider tables need the command line, since each page and guess would take minutes."""
router = APIRouter(prefix="/tables", tags=["tables"], dependencies=CUSTODIAN, route_class=AuthenticatedRoute)


class TableInfo(BaseModel):
    """An uploaded table; the API never returns its cells."""

    id: str
    name: str
    created: str
    rows: int
    bytes: int
    columns: list[str]


class TableJobRequest(PolicyBody):
    """The policy and the method for the release of a table."""

    method: Literal["auto", "optimal", "supervised", "local", "mondrian", "anatomy"] | None = None


class ColumnGuess(BaseModel):
    """The guessed role and hierarchy of a column, with the reason."""

    column: str
    role: str
    why: str
    hierarchy: dict[str, Any] | None = None


class PolicyGuess(BaseModel):
    """The guesses for all columns, and the policy with these guesses to correct and send."""

    person: str | None
    missing: list[str] = []
    columns: list[ColumnGuess]
    policy: dict[str, Any]


@router.post("", status_code=201, responses=errors(415), openapi_extra=raw_body(*CONTENT_TYPES))
async def upload(
    request: Request,
    hub: HubDependency,
    name: Annotated[str, Query(max_length=100, pattern=r"^[\w .()-]*$")] = "table",
) -> TableInfo:
    """Upload a table as CSV, Parquet, Arrow or NDJSON."""
    check_content_type(request)
    body = await request.body()
    return TableInfo(**await in_thread(lambda: store_table(hub, body, name)))


def store_table(hub: Hub, body: bytes, name: str) -> dict[str, Any]:
    """Store a table if it can be read."""
    table = read_upload(body)
    if table.num_columns > MAX_COLUMNS:
        raise DataError(
            f"The table has {table.num_columns:,} columns; the limit of the service is {MAX_COLUMNS:,}.",
            hint="Remove columns that will not be released, or use the command line.",
        )
    document = {
        "id": new_id(),
        "name": name,
        "created": now(),
        "rows": table.num_rows,
        "bytes": len(body),
        "columns": table.column_names,
    }

    def store(tx: Transaction) -> None:
        hub.tables.put(tx, str(document["id"]), document)
        hub.tables.put_blob(tx, str(document["id"]), body)

    hub.write_and_log("send", f"table:{name}", store)
    return document


@router.get("", responses=errors())
async def list_tables(hub: HubDependency) -> list[TableInfo]:
    """List all tables, newest first."""
    return [TableInfo(**table) for table in await in_thread(hub.tables.all)]


@router.get("/{ident}", responses=errors(404))
async def get_table(ident: Ident, hub: HubDependency) -> TableInfo:
    """Get the columns and the size of a table."""
    return TableInfo(**await in_thread(lambda: hub.tables.get(ident)))


@router.delete("/{ident}", status_code=204, responses=errors(404))
async def delete_table(ident: Ident, hub: HubDependency) -> None:
    """Delete a table; its releases stay."""
    await in_thread(lambda: hub.delete_table(ident, at_once=True))


@router.get("/{ident}/guess", responses=errors(404))
async def guess_policy(ident: Ident, hub: HubDependency) -> PolicyGuess:
    """Guess a role and a hierarchy for each column, with reasons that quote no value."""

    def work() -> PolicyGuess:
        head = head_of(hub.tables.blob(ident), SAMPLE)
        columns = guess(head)
        rows = [ColumnGuess(column=g.column, role=g.role, why=g.why, hierarchy=g.hierarchy) for g in columns]
        return PolicyGuess(
            person=guess_person(columns),
            missing=list(guess_missing_markers(head)),
            columns=rows,
            policy=settings_of(head, columns),
        )

    return await in_thread(work)


@router.post("/{ident}/jobs", status_code=202, responses=errors(404, 409))
async def start_job(ident: Ident, body: TableJobRequest, hub: HubDependency) -> Job:
    """Start a job that releases a table under a policy; the release appears under /releases."""

    def work() -> dict[str, Any]:
        table = hub.tables.get(ident)
        policy = hub.accept(body.bundle())
        policy.check_columns(table["columns"])
        request = {"table": ident, "policy_hash": policy.hash, "method": body.method}
        return hub.jobs.begin("table", table["name"], request)

    return Job(**await in_thread(work))
