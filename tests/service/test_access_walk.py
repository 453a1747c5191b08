"""Every route with every role and scope, and with a wrong, an expired, a revoked and a missing token."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import httpx
import pytest
from serving import InThread, csv, feed_policy, until_done

from reticent.datasets import feed, hospital
from reticent.errors import PolicyError
from reticent.service import routes as routes_package
from reticent.service.tokens import Role, Tokens

OPEN = {("GET", "/api/v1/health")}
# What each role may do, spelt out here and not read from the routes.
FEED = {("POST", "/api/v1/streams/{name}/records"), ("POST", "/api/v1/evolving/{name}/changes")}
ANALYST = {
    ("GET", "/api/v1/streams"),
    ("GET", "/api/v1/streams/{name}/records"),
    ("GET", "/api/v1/streams/{name}/events"),
    ("GET", "/api/v1/streams/{name}/codebook"),
    ("GET", "/api/v1/releases"),
    ("GET", "/api/v1/releases/{ident}"),
    ("GET", "/api/v1/releases/{ident}/download"),
}
MONITOR = {("GET", "/api/v1/metrics")}
ALLOWED = {Role.FEED: FEED, Role.ANALYST: ANALYST, Role.MONITOR: MONITOR}


def routes(server: InThread) -> list[tuple[str, str]]:
    document = httpx.get(f"{server.root}/api/v1/openapi.json").json()
    return [(method.upper(), path) for path, item in document["paths"].items() for method in item]


def written() -> set[tuple[str, str]]:
    """All routes in the source, whether or not the document tells of them."""
    modules = [
        import_module(f"{routes_package.__name__}.{m.name}") for m in pkgutil.iter_modules(routes_package.__path__)
    ]
    found = [route for module in modules if hasattr(module, "router") for route in getattr(module.router, "routes", [])]
    return {(method, f"/api/v1{route.path}") for route in found for method in route.methods}


def call(server: InThread, method: str, path: str, token: str | None) -> httpx.Response:
    where = re.sub(r"\{ident\}", "0" * 16, re.sub(r"\{name\}", "nothing", path))
    headers = {"Authorization": token} if token is not None else {}
    content = b"{}" if method == "POST" else None
    kind = "application/json" if not path.endswith(("records", "changes")) else "application/x-ndjson"
    if content:
        headers["Content-Type"] = kind
    return server.caller.request(method, server.root + where, headers=headers, content=content)


def test_the_document_lists_every_route(server):
    found = routes(server)
    assert written() == set(found)
    assert set(found) > OPEN | FEED | ANALYST | MONITOR


@pytest.mark.parametrize("role", list(Role))
def test_each_role_may_do_what_it_may(server, role):
    for method, path in routes(server):
        if (method, path) in OPEN:
            continue
        answer = call(server, method, path, f"Bearer {server.tokens[role]}")
        may = role is Role.CUSTODIAN or (method, path) in ALLOWED[role]
        assert (answer.status_code == 403) != may, (method, path, answer.status_code)
        assert answer.status_code != 401
        assert answer.status_code < 500


@pytest.mark.parametrize("role", [Role.FEED, Role.ANALYST])
@pytest.mark.parametrize(
    ("scope", "within"),
    [
        (["stream:nothing"], {"stream"}),
        (["stream:noth*"], {"stream"}),
        (["evolving:nothing"], {"evolving"}),
        (["evolving:*", "stream:*"], {"stream", "evolving"}),
        (["stream:other", "evolving:nothing2"], set()),
        (["stream:nothing-else", "stream:nothin"], set()),
    ],
)
def test_each_scope_reaches_its_sources(server, role, scope, within):
    token = Tokens(server.hub.store).create("narrow", role, scope=scope)[0]
    for method, path in sorted(ALLOWED[role]):
        if "{name}" not in path or path.endswith("/events"):
            continue
        answer = call(server, method, path, f"Bearer {token}")
        kind = path.split("/")[3].removesuffix("s")
        assert (answer.status_code == 403) != (kind in within), (method, path)
        if answer.status_code == 403:
            assert answer.json()["error"]["code"] == "scope"


@pytest.mark.parametrize(
    ("role", "scope"),
    [
        (Role.CUSTODIAN, "stream:x"),
        (Role.MONITOR, "stream:x"),
        (Role.FEED, "release:x"),
        (Role.FEED, "x"),
        (Role.ANALYST, "stream:*x"),
        (Role.ANALYST, "king:x"),
        (Role.ANALYST, "stream:a:b"),
        (Role.ANALYST, "stream:\n"),
    ],
)
def test_a_scope_that_means_nothing_is_refused(server, role, scope):
    with pytest.raises(PolicyError):
        Tokens(server.hub.store).create("narrow", role, scope=[scope])


def test_an_analyst_sees_the_releases_of_the_scope(server):
    patients = hospital.generate(200, 8).select(["patient_id", "sex", "diagnosis"])
    columns = {"patient_id": {"role": "identifier"}, "sex": {"role": "quasi"}, "diagnosis": {"role": "sensitive"}}
    policy = {"version": 1, "columns": columns, "privacy": {"k": 2, "suppression": 0.2}}
    idents = {}
    with server.client() as client:
        for number, name in enumerate(("north.csv", "south.csv")):
            part = patients.slice(100 * number, 100)
            sent = client.post(f"/tables?name={name}", content=csv(part), headers={"Content-Type": "text/csv"}).json()
            job = client.post(f"/tables/{sent['id']}/jobs", json={"policy": policy}).json()
            idents[name] = until_done(client, job["id"])["release"]
    north, south = idents["north.csv"], idents["south.csv"]
    for scope in (["table:north.csv"], [f"release:{north}"], ["table:no*", "stream:x"]):
        token = Tokens(server.hub.store).create("narrow", Role.ANALYST, scope=scope)[0]
        with httpx.Client(base_url=f"{server.root}/api/v1", headers={"Authorization": f"Bearer {token}"}) as client:
            assert [release["id"] for release in client.get("/releases").json()] == [north]
            assert client.get(f"/releases/{north}/download").status_code == 200
            hidden, unknown = client.get(f"/releases/{south}"), client.get(f"/releases/{'0' * 16}")
            assert (hidden.status_code, hidden.json()) == (404, unknown.json())
            assert client.get(f"/releases/{south}/download").status_code == 404
            assert client.get("/streams").json() == []


def bad_tokens(server: InThread) -> dict[str, str | None]:
    right = server.tokens[Role.CUSTODIAN]
    kind, ident, secret = right.split("_", 2)
    tokens = Tokens(server.hub.store, clock=lambda: 0.0)
    expired = tokens.create("expired", Role.CUSTODIAN, days=1)[0]
    revoked, entry = Tokens(server.hub.store).create("revoked", Role.CUSTODIAN)
    Tokens(server.hub.store).revoke(entry.id)
    other = server.tokens[Role.FEED].split("_", 2)[2]
    return {
        "missing": None,
        "empty": "Bearer",
        "another scheme": f"Basic {right}",
        "no scheme": right,
        "wrong secret": f"Bearer {kind}_{ident}_{'x' * len(secret)}",
        "another's secret": f"Bearer {kind}_{ident}_{other}",
        "cut secret": f"Bearer {right[:-1]}",
        "unknown id": f"Bearer {kind}_000000000000_{secret}",
        "not a token": "Bearer ../../etc/passwd",
        "expired": f"Bearer {expired}",
        "revoked": f"Bearer {revoked}",
    }


def test_nobody_gets_in_without_a_right_token(server):
    for what, token in bad_tokens(server).items():
        for method, path in routes(server):
            answer = call(server, method, path, token)
            if (method, path) in OPEN:
                assert answer.status_code == 200
                continue
            assert answer.status_code == 401, (what, method, path, answer.status_code)
            assert set(answer.json()["error"]) == {"code", "message", "hint"}


def test_the_private_side_has_no_read_path(server):
    """No answer to a GET, for any role, shows a raw identifier, a person or a secret."""
    people, patients = feed.generate(50, 3), hospital.generate(300, 3)
    with server.client() as client:
        client.post("/streams", json={"name": "quiet", **feed_policy()}).raise_for_status()
        from serving import NDJSON, lines

        client.post(
            "/streams/quiet/records", content=lines(people), headers={"Content-Type": NDJSON, "Idempotency-Key": "1"}
        ).raise_for_status()
        table = client.post("/tables", content=csv(patients), headers={"Content-Type": "text/csv"}).json()
        paths = [path for method, path in routes(server) if method == "GET" and not path.endswith("events")]
        secrets = set(people.column("patient_id").to_pylist()) | set(patients.column("patient_id").to_pylist())
        secrets |= set(patients.column("name").to_pylist())
        for path in paths:
            text = client.get(
                path.removeprefix("/api/v1").replace("{name}", "quiet").replace("{ident}", table["id"])
            ).text
            assert not [secret for secret in secrets if secret in text], path
        raw = client.get("/streams/quiet/records").text
    assert not set(people.column("patient_id").to_pylist()) & set(re.findall(r'"([^"]*)"', raw))


def test_too_many_wrong_tokens_are_slowed_down(tmp_path):
    running = InThread(tmp_path, wrong_token_rate=1.0)
    try:
        answers = [httpx.get(f"{running.root}/api/v1/streams").status_code for _ in range(6)]
        assert answers[0] == 401
        assert answers[-1] == 429
    finally:
        running.close()


def test_one_token_cannot_flood(tmp_path):
    running = InThread(tmp_path, rate=2.0)
    try:
        with running.client() as client:
            assert 429 in [client.get("/streams").status_code for _ in range(12)]
        with running.client(Role.ANALYST) as other:
            assert other.get("/streams").status_code == 200
    finally:
        running.close()
