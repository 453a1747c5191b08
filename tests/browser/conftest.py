"""A browser, and servers for it; whatever a page asks of another host, or complains about, fails the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

import pytest
from driving import WIDTHS

from reticent.service.tokens import Role, Tokens
from reticent.store import Store

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def serve(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "reticent", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "serves at" in line:
            return process, line.split()[-1]
    raise AssertionError("the server did not start")


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    process.stderr.close()


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is missing; scripts/install-test-services installs it")
        pytest.skip("Chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def demo():
    """The demonstration, ended with the pages that show it: its stream would be fed as long as the worker lives."""
    process, address = serve("--demo")
    yield address
    stop(process)


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """A server that needs tokens: its address and a token per role."""
    store = tmp_path_factory.mktemp("guarded") / "store.db"
    with Store.open(store) as kept:
        tokens = {role: Tokens(kept).create(f"test {role}", role)[0] for role in Role}
    process, address = serve("--store", str(store))
    yield address, tokens
    stop(process)


@pytest.fixture
def custodian(request, context, guarded):
    """A signed-in custodian's page, at the width of a desk and of a phone, and the server's address."""
    address, tokens = guarded
    page = context.new_page()
    width, height = WIDTHS[request.param]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{address}/sign-in")
    page.get_by_label("Token").fill(tokens[Role.CUSTODIAN])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Upload a table").wait_for()
    page.size = request.param
    return page, address


@pytest.fixture
def context(browser):
    """A fresh visitor whose pages are watched."""
    opened = browser.new_context(accept_downloads=True, reduced_motion="reduce")
    opened.set_default_timeout(120_000)
    asked: list[str] = []
    said: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on(
        "console", lambda message: said.append(f"{message.type}: {message.text}") if message.type == "error" else None
    )
    opened.on("weberror", lambda error: said.append(str(error.error)))
    opened.said = said
    yield opened
    hosts = {urlparse(url).hostname for url in asked if not url.startswith(("data:", "blob:"))}
    opened.close()
    assert hosts <= {"127.0.0.1"}, hosts
    assert said == []
