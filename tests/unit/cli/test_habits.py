"""What schedulers and shells rely on: quiet, verbose, exit codes, JSON, completion."""

import json
import os
import subprocess
import sys

import pytest

from reticent.errors import ConnectorError, DataError, GuaranteeError, InternalError, PolicyError, StateError

# By the name it is installed under: the shell asks by that.
COMMAND = [sys.executable, "-c", "import sys; sys.argv[0] = 'reticent'; from reticent.cli import entry; entry()"]


def run(*words, cwd, **environment):
    done = subprocess.run(
        [*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house")
    assert run("datasets", "hospital", "-n", "300", "--seed", "1", "-o", "h.csv", cwd=folder)[0] == 0
    return folder


def test_quiet_says_nothing_but_errors_and_json(house):
    words = ("anonymize", "h.csv", "-p", "h.policy.yaml", "--seed", "1", "--json")
    code, out, err = run(*words, "-o", "a", "--quiet", cwd=house)
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["rows_in"] == 300
    code, out, err = run("--quiet", *words, "-o", "a", cwd=house)
    assert code == 5
    assert err.startswith("Error: a exists")


def test_verbose_is_taken_anywhere_and_words_after_two_dashes_are_not_ours(house):
    assert run("verify", "a", "-p", "h.policy.yaml", "--verbose", cwd=house)[0] in (0, 3)
    assert run("anonymize", "--", "--quiet", cwd=house)[0] == 2


def test_the_shell_completes_commands(house):
    code, out, _ = run(
        cwd=house,
        _RETICENT_COMPLETE="complete_bash",
        COMP_WORDS="reticent ano",
        COMP_CWORD="1",
        _TYPER_COMPLETE_ARGS="reticent ano",
    )
    assert code == 0
    assert "anonymize" in out


def test_the_page_of_exit_codes_is_the_errors(request):
    page = (request.config.rootpath / "docs" / "schedulers.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    codes = {name: row[0].strip("| ") for row in rows for name in row[1].replace("`", "").split(", ")}
    for error in (PolicyError, DataError, GuaranteeError, StateError, ConnectorError, InternalError):
        assert codes[error.__name__] == str(error.exit_code)
