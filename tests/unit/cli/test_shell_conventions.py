"""What schedulers and shells rely on: quiet, verbose, exit codes, JSON, completion."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from reticent.errors import ConnectorError, DataError, GuaranteeError, InternalError, PolicyError, StateError

# Under the name that it is installed by, because the shell uses that name.
COMMAND = [sys.executable, "-c", "import sys; sys.argv[0] = 'reticent'; from reticent.cli import entry; entry()"]


def run(*words, cwd, **environment):
    done = subprocess.run(
        [*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    assert run("datasets", "hospital", "-n", "300", "--seed", "1", "-o", "h.csv", cwd=folder)[0] == 0
    return folder


def test_quiet_prints_errors_and_json_only(folder):
    words = ("anonymize", "h.csv", "-p", "h.policy.yaml", "--seed", "1", "--json")
    code, out, err = run(*words, "-o", "a", "--quiet", cwd=folder)
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["input"] == 300
    code, out, err = run("--quiet", *words, "-o", "a", cwd=folder)
    assert code == 5
    assert err.startswith("Error: a exists")


def test_verbose_works_anywhere_and_words_after_two_dashes_are_no_options(folder):
    assert run("verify", "a", "-p", "h.policy.yaml", "--verbose", cwd=folder)[0] in (0, 3)
    assert run("anonymize", "--", "--quiet", cwd=folder)[0] == 2


def test_the_shell_completes_commands(folder):
    asked = {"_RETICENT_COMPLETE": "bash_complete", "COMP_WORDS": "reticent ano", "COMP_CWORD": "1"}
    code, out, _ = run(cwd=folder, **asked)
    assert code == 0
    assert out.splitlines() == ["plain,anonymize"]


@pytest.mark.parametrize(
    ("line", "word", "first"), [("reticent st", "st", "stream"), ("reticent store ", "", "backup")]
)
def test_powershell_completes_too(folder, line, word, first):
    asked = {"RETICENT_COMPLETE_LINE": line, "RETICENT_COMPLETE_WORD": word}
    code, out, _ = run(cwd=folder, _RETICENT_COMPLETE="powershell_complete", **asked)
    assert code == 0
    assert out.splitlines()[0].startswith(f"{first}\t")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_script_of_each_shell_names_the_command(folder, shell):
    code, out, _ = run("--show-completion", shell, cwd=folder, SHELL="")
    assert code == 0
    assert "_RETICENT_COMPLETE" in out
    assert f"{shell}_complete" in out


def test_a_shell_that_is_not_known_is_wrong_usage(folder):
    assert run("--show-completion", cwd=folder, SHELL="")[0] == 2
    assert run("--install-completion", "csh", cwd=folder)[0] == 2


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="needs bash")
def test_the_installed_completion_works_in_bash_and_is_installed_once(tmp_path):
    (tmp_path / ".bashrc").write_text("# mine")
    program = tmp_path / "reticent"
    program.write_text("#!/bin/sh\nexec " + " ".join(map(shlex.quote, COMMAND)) + ' "$@"\n')
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "SHELL": "/bin/bash"}
    for _ in range(2):
        code, out, _ = run("--install-completion", cwd=tmp_path, **home)
        assert (code, "Open a new terminal" in out) == (0, True)
    lines = (tmp_path / ".bashrc").read_text().splitlines()
    assert (lines[0], len(lines)) == ("# mine", 2)
    ask = f"""
    . {tmp_path}/.bashrc
    COMP_WORDS=({program} evolve pu) COMP_CWORD=2
    _reticent_completion {program}
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, env=os.environ | home)
    assert done.stdout.split() == ["publish"]


def test_a_user_who_stops_a_command_gets_the_code_of_shells(monkeypatch):
    from reticent.cli import main
    from reticent.policy import Policy

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Policy, "load", stopped)
    with pytest.raises(SystemExit) as end:
        main(["policy", "check", "p.yaml"])
    assert end.value.code == 130


def test_a_command_leaves_when_threads_and_handlers_are_done_and_everything_is_written(tmp_path):
    code = """
import atexit, sys, threading
from reticent.cli import entry
from reticent.cli import policy
def work():
    print("x" * 1_000_000)
    threading.Thread(target=lambda: (threading.Event().wait(0.2), print("thread"))).start()
    atexit.register(print, "handler")
    sys.exit(4)
policy.schema.callback = work
sys.argv = ["reticent", "policy", "schema"]
entry()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 4
    assert done.stdout.split() == ["x" * 1_000_000, "thread", "handler"]


def test_the_page_of_exit_codes_is_the_errors(request):
    page = (request.config.rootpath / "docs" / "schedulers.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    codes = {name: row[0].strip("| ") for row in rows for name in row[1].replace("`", "").split(", ")}
    for error in (PolicyError, DataError, GuaranteeError, StateError, ConnectorError, InternalError):
        assert codes[error.__name__] == str(error.exit_code)


def test_the_shell_completes_files_where_data_or_a_store_is_named(folder):
    for words in ("reticent anonymize h", "reticent stream h", "reticent ask h", "reticent ledger h"):
        place = str(len(words.split()) - 1)
        code, out, _ = run(cwd=folder, _RETICENT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
        assert (code, out.splitlines()) == (0, ["file,h"]), words


def test_a_closed_pipe_is_no_error(folder):
    line = f"{shlex.join(COMMAND)} policy schema | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")  # noqa: PTH110
def test_a_full_output_is_no_internal_error(folder):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, "policy", "schema"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 5
    assert "No space left" in done.stderr
    assert "bug" not in done.stderr


def test_a_terminal_without_umlauts_shows_substitutes(folder):
    (folder / "u.csv").write_text(
        "Alter,Ort,Diagnose\n" + "40,Köln,Röteln\n41,Bonn,Grippe\n40,Köln,Grippe\n41,Bonn,Röteln\n" * 15,
        encoding="utf-8",
    )
    (folder / "u.yaml").write_text(
        "version: 1\ncolumns: {Alter: quasi, Ort: quasi, Diagnose: sensitive}\nprivacy: {l: 2}\ntable: {method: anatomy}\n"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run("anonymize", "u.csv", "-p", "u.yaml", "-o", "u", cwd=folder, **ascii_only)[0] == 0
    code, out, err = run("ask", "u", "--by", "Ort", cwd=folder, **ascii_only)
    assert (code, "K\\xf6ln" in out) == (0, True), err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("privacy: 5", "must be entries in braces"),
        ("privacy: {k: five}", "must be a whole number"),
        ("privacy: {l: {distinct: x}}", "must be a number"),
        ("privacy: {l: x}", "one of {distinct: 3}"),
        ("privacy: {l: 300}\nprior: {file: h.prior.csv}\nevolving: {method: veil}", "at most 254 candidates"),
    ],
)
def test_a_wrong_kind_of_setting_is_named_in_plain_words(folder, change, told):
    lines = (folder / "h.policy.yaml").read_text().split("privacy:")[0]
    (folder / "wrong.yaml").write_text(lines + change + "\n")
    code, _, err = run("policy", "check", "wrong.yaml", cwd=folder)
    assert code == 2
    assert told in err


def test_what_is_missing_or_unknown_is_named(folder):
    assert run("anonymize", "h.csv", "-p", "h.policy.yaml", "-o", "here", cwd=folder)[0] == 0
    for words, code, told in (
        (("export", "here", "nonsense://x"), 2, "not a supported database"),
        (("store", "restore", "nobody.db", "new.db"), 5, "no such file"),
        (("prior", "h.csv", "-p", "h.policy.yaml", "-o", "p.csv", "--epsilon", "-1"), 2, "not in the range"),
        (("prior", "h.csv", "-p", "h.policy.yaml", "-o", "p.csv", "--epsilon", "nan"), 2, "must be a finite number"),
        (("ask", "here", "--value", "i10"), 2, "Did you mean 'I10'?"),
    ):
        found, _, err = run(*words, cwd=folder)
        assert (found, told in err) == (code, True), err
