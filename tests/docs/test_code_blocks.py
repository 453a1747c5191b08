"""Every code block of the README and of the documentation runs, page by page, in an empty folder.

A page may prepare its folder in a comment that readers do not see: `<!-- before bash` or `<!-- before python`. Blocks:
`console` and `bash` are run (a line may end in `# exit 4`), `python` is executed, `yaml` and `json` are read, a whole
policy as a policy. Python after `<!-- needs a cluster -->` is compiled and its imports are run. `text` and `mermaid` are no code. Any other language is refused, so that nothing slips by.
"""

import ast
import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from reticent.policy import Policy

TOP = Path(__file__).parent.parent.parent
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", *sorted((TOP / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^ *<!-- before (\w+)\n(.*?)^ *-->|(<!-- needs a cluster -->\n\n)?^( *)```([\w-]*)[^\n]*\n(.*?)^ *```",
    re.MULTILINE | re.DOTALL,
)
NO_CODE = ("text", "mermaid")
# These wait for the world: only that they exist is looked at; their work is tested with real senders and brokers.
ENDLESS = re.compile(r"reticent stream (mllp|kafka)://")


def blocks(page):
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        before, hidden, far, indent, kind, text = found.groups()
        if before:
            yield before, hidden
        else:
            yield "imports" if far else kind, "\n".join(line.removeprefix(indent) for line in text.splitlines())


def commands(kind, text):
    lines = text.replace("\\\n", " ").splitlines()
    if kind == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            wanted = re.search(r"#.*\bexit (\d)", line)
            yield (
                re.sub(r"\s+#.*$", "", line).replace(".venv/bin/reticent", "reticent"),
                int(wanted[1]) if wanted else 0,
            )


def run(command, wanted):
    words = shlex.split(command)
    if words[0] == "make":
        done = subprocess.run(
            [shutil.which("make"), "-n", *words[1:]], cwd=TOP, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return
    if ENDLESS.match(command):
        words = [*words[:2], "--help"]
        command = shlex.join(words)
    if command.startswith("reticent serve"):
        serve(words[1:])
        return
    if command.startswith("reticent reproduce"):
        understood(words[1:])
        return
    simple = words[0] == "reticent" and words[1] != "stream" and not re.search(r"[|<>&;$]", command)
    code = in_process(words[1:]) if simple else in_shell(command)
    assert code == wanted, f"{command}: exit {code}"


def understood(words):
    """The whole takes minutes, and `tests/unit/reproduce` runs all four: here the words are those of the command."""
    from reticent.cli import app

    with app.make_context("reticent", list(words)) as context:
        name, command, rest = app.resolve_command(context, words)
        command.make_context(name, rest)


def serve(words):
    """Starts the server on a free loopback port, asks how it is, and ends it."""
    words = [*words, "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen([sys.executable, "-m", "reticent", *words], stderr=subprocess.PIPE, text=True)
    with process:
        try:
            address = re.search(r"serves at (\S+)", process.stderr.readline())[1]
            trusting = ssl.create_default_context(cafile="cert.pem" if Path("cert.pem").exists() else None)
            trusting.check_hostname = False
            assert answer(f"{address}/api/v1/health", trusting, process) == 200
        finally:
            process.terminate()
    assert process.returncode == 0


def answer(address, trusting, process):
    """The status of a page, asked again until somebody listens."""
    while process.poll() is None:
        try:
            with urllib.request.urlopen(address, context=trusting, timeout=60) as page:  # noqa: S310
                return page.status
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            threading.Event().wait(0.05)
    return None


def in_process(words):
    from reticent.cli import main

    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code or 0


def in_shell(command):
    shim = Path.cwd() / ".bin"
    if not shim.exists():
        shim.mkdir()
        (shim / "reticent").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reticent "$@"\n')
        (shim / "reticent").chmod(0o700)
    env = os.environ | {"PATH": f"{shim}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], env=env, check=False).returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for kind, text in blocks(page):
        if kind in {"console", "bash", "sh"}:
            for command, wanted in commands(kind, text):
                run(command, wanted)
        elif kind == "python":
            exec(compile(text, str(page), "exec"), names)  # noqa: S102 - our own pages
        elif kind == "imports":
            tree = ast.parse(text, str(page))
            tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            exec(compile(tree, str(page), "exec"), names)  # noqa: S102
        elif kind == "yaml":
            value = yaml.safe_load(text)
            if isinstance(value, dict) and "version" in value:
                Policy.from_dict(value)
        elif kind == "json":
            for line in text.splitlines() if text.count("\n{") else [text]:
                json.loads(line)
        else:
            assert kind in NO_CODE, f"{page.name}: a block in '{kind or 'no language'}' that no test can run"


def anchors(page):
    """The names of a page's headings, as the site gives them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    seen = {}
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())
        seen[name] = seen.get(name, -1) + 1
        yield name if not seen[name] else f"{name}_{seen[name]}"


def test_links_lead_somewhere():
    names = {page.resolve(): set(anchors(page)) for page in PAGES}
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            if target.startswith(("http://", "https://", "mailto:")):
                continue
            to = (page.parent / target).resolve() if target else page.resolve()
            assert to.exists(), f"{page.relative_to(TOP)}: {target}"
            assert not anchor or anchor in names[to], f"{page.relative_to(TOP)}: {target}#{anchor}"


def test_every_feature_we_claim_leads_to_a_page():
    rows = (TOP / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
    rows = rows[: next(at for at, row in enumerate(rows) if row.startswith("| tool "))]
    table = [row.split("|")[1:3] for row in rows if row.startswith("| ") and not row.startswith("| |")]
    assert len(table) > 20
    assert not [feature for feature, ours in table if "](" not in ours]


def test_files_that_pages_name_are_there():
    for page in PAGES:
        for name in re.findall(r"`((?:tests|bench|deploy|scripts|src)/[\w./-]+)`", page.read_text(encoding="utf-8")):
            made_later = name.startswith("bench/results/")
            assert made_later or (TOP / name).exists(), f"{page.relative_to(TOP)}: {name}"
