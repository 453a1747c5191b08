"""Two hundred hostile names, values and file names through upload, pages, report and downloads: nothing runs."""

from __future__ import annotations

import inspect
import io
import itertools
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from serving import InThread, csv, until_done

from reticent.service.tokens import Role

NAMES = int(os.environ.get("RETICENT_HOSTILE", "12"))
RUN = "console.log(7331)"
BREAKS = [
    "",
    '"',
    "'",
    "`",
    '">',
    "'>",
    "</script>",
    "</style>",
    "</textarea>",
    "</title>",
    "-->",
    "]]>",
    "\\",
    '\\"',
    "}}",
]
BREAKS += ["{{", "${", "\n", "\t", "\x00"]
ATTACKS = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f'" innerHTML="<img src=x onerror={RUN}>',
    f' :title="{RUN}"',
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"javascript:{RUN}",
    f"' onfocus='{RUN}' autofocus='",
    f"<iframe srcdoc='<script>{RUN}</script>'>",
    f"${{{RUN}}}",
]
HOSTILE = [f"{start}{attack}" for start, attack in itertools.product(BREAKS, ATTACKS)]
KEYS = [
    ":formatter",
    "__proto__",
    "constructor",
    "innerHTML",
    "row",
    "c0",
    "v-html",
    "onclick",
    "=1+1",
    "../../etc/passwd",
]


def table() -> pa.Table:
    """As many hostile columns as were asked for, and every hostile value in them."""
    some = HOSTILE[:: len(HOSTILE) // NAMES]
    names = [text.replace("\x00", "") + " " * (i % 2) + str(i) for i, text in enumerate(some)] + KEYS
    rows = 60
    columns = {}
    for i, name in enumerate(names):
        turns = [row // 10 if i < 3 else i * rows + row for row in range(rows)]  # the first three are grouped
        columns[name] = [HOSTILE[turn % len(HOSTILE)].replace("\x00", "") for turn in turns]
    return pa.table(columns)


def policy(names: list[str]) -> dict:
    roles = dict.fromkeys(names, "plain") | {names[0]: "quasi", names[1]: "quasi", names[2]: "sensitive"}
    columns = {name: {"role": role} for name, role in roles.items()}
    return {"version": 1, "columns": columns, "privacy": {"k": 2, "l": 2, "suppression": 0.2}}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    pytest.importorskip("nicegui")
    running = InThread(tmp_path_factory.mktemp("hostile"), studio=True)
    yield running
    running.close()


def released(server: InThread) -> dict[str, str]:
    """A table of hostile names and values, sent and released; the ids of all that came of it."""
    names = table().column_names
    with server.client() as client:
        sent = client.post("/tables?name=hostile", content=csv(table()), headers={"Content-Type": "text/csv"})
        sent.raise_for_status()
        job = client.post(f"/tables/{sent.json()['id']}/jobs", json={"policy": policy(names)}).json()
        done = until_done(client, job["id"])
        assert done["state"] == "done", done
        audit = client.post("/audits", json={"releases": [done["release"]], "report": True}).json()["id"]
    return {"table": sent.json()["id"], "job": job["id"], "release": done["release"], "id": done["release"]} | {
        "audit": audit,
        "releases": done["release"],
        "stream": HOSTILE[1],
        "draft": tried(server, sent.json()["id"], names) if len(HOSTILE) <= NAMES else HOSTILE[2],
    }


def tried(server: InThread, table: str, names: list[str]) -> str:
    """A draft of the same table: its names and values in charts and comparisons."""
    from reticent.service.pages import drafts
    from reticent.service.pages.plan import Plan

    hub = server.hub
    plan = Plan.of(hub, table)
    plan.adopt(hub, yaml.safe_dump(policy(names) | {"table": {"method": "mondrian"}}), {})
    drafts.begin(hub, plan, [(HOSTILE[4], {})])
    for job in hub.jobs.all():
        assert hub.jobs.wait(job["id"])["state"] == "done", job
    return drafts.of_table(hub, table)[0]["id"]


def addresses(known: dict[str, str]) -> list[str]:
    """Every page with every parameter it takes, singly and all together."""
    from urllib.parse import urlencode

    from nicegui.client import Client

    found = []
    for build, path in Client.page_routes.items():
        if not build.__module__.startswith("reticent."):
            continue
        takes = [name for name in inspect.signature(build).parameters if name != "request"]
        singly = [[name] for name in takes]
        found += [f"{path}?{urlencode({name: known.get(name, HOSTILE[3]) for name in some})}" for some in [[], *singly]]
    return found


def bad(text: str) -> bool:
    """It ran, or the browser had to stop it."""
    return text == "7331" or "Content Security Policy" in text


def content(page) -> str:
    """What a page holds, once it has gone where it goes by itself."""
    from playwright.sync_api import Error

    for _ in range(50):
        try:
            return page.content()
        except Error:
            page.wait_for_timeout(200)
    return page.content()


def watched(page) -> list[str]:
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda message: said.append(message.text) if bad(message.text) else None)
    return said


@pytest.mark.slow
def test_nothing_runs(browser, hostile, tmp_path):
    assert len(HOSTILE) == 200
    known = released(hostile)
    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(60_000)
    page = context.new_page()
    said = watched(page)
    page.goto(f"{hostile.root}/sign-in")
    page.get_by_label("Token").fill(hostile.tokens[Role.CUSTODIAN])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="History").first.wait_for()
    seen = ""
    for address in addresses(known):
        assert page.goto(hostile.root + address).status in (200, 404), address
        page.wait_for_function("window.did_handshake || !document.querySelector('#app')")
        page.wait_for_timeout(150)
        seen += content(page)
        assert said == [], address
    assert "onerror" in seen  # the names were shown, as words
    for number, name in enumerate([*KEYS[:2], *HOSTILE[:: len(HOSTILE) // 6]]):
        body = csv(pa.table({f"{name}{number}": ["1", "2"], "b": ["x", name]}))
        tab = context.new_page()  # one of its own, for a page that takes a file goes on by itself
        said = watched(tab)
        tab.goto(hostile.root)
        tab.locator("input[type=file]").first.set_input_files(
            {"name": f"{name}.csv".replace("\x00", ""), "mimeType": "text/csv", "buffer": body}
        )
        tab.wait_for_timeout(400)
        assert said == [], name
        tab.close()
    context.close()
    downloads(browser, hostile, known, tmp_path)


def downloads(browser, server: InThread, known: dict[str, str], folder: Path) -> None:
    """The report and the files of a release, opened from a disk: no policy of a server protects anyone who does that."""
    with server.client() as client:
        (folder / "report.html").write_bytes(client.get(f"/audits/{known['audit']}/report").content)
        packed = client.get(f"/releases/{known['release']}/download").content
    zipfile.ZipFile(io.BytesIO(packed)).extractall(folder / "release")
    context = browser.new_context()
    page = context.new_page()
    said = watched(page)
    for file in [folder / "report.html", *sorted((folder / "release").iterdir())]:
        if file.suffix in (".html", ".txt", ".json"):
            page.goto(file.as_uri())
            page.wait_for_timeout(300)
            assert said == [], file.name
    context.close()
