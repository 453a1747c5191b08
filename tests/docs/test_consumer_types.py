"""What a program that uses the package is told by its type checker, under mypy and under pyright."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reticent

RIGHT = """
from pathlib import Path
from typing import Any, assert_type

import reticent
from reticent.verify import VerificationResult
from reticent.report import Audit
from reticent.testing import assert_holds


def release(frame: Any, store: Path) -> None:
    policy = reticent.Policy(columns={"age": "quasi", "ill": "sensitive"}, privacy={"k": 5, "l": 2})
    assert_type(policy, reticent.Policy)
    assert_type(reticent.Policy.guess(frame), reticent.Policy)
    assert_type(policy.to_yaml(), str)
    assert_type(policy.quasi, tuple[str, ...])
    made = reticent.anonymize(frame, policy, method="local", seed=1)
    assert_type(made, reticent.Release)
    assert_type(made.records.published, int)
    assert_type(made.to_dir("out", format="parquet"), Path)
    assert_type(reticent.verify([made, "other"], "policy.yaml", original=frame), VerificationResult)
    assert_type(reticent.verify(made, policy).holds, bool)
    assert_type(reticent.audit(made, policy), Audit)
    assert_type(reticent.risk(frame, quasi=["age"]).unique, float)
    assert_type(assert_holds(made, policy), VerificationResult)
    with reticent.EvolvingTable(store, policy) as table:
        assert_type(table, reticent.EvolvingTable)
        assert_type(table.insert(frame).inserted, int)
        assert_type(table.publish(), reticent.Release)
    assert_type(reticent.Series(store, policy).publish(frame), reticent.Release)
    with reticent.Stream(policy, store=store) as stream:
        assert_type(stream.push(b"{}"), bytes)
    received = reticent.read(store)
    assert_type(received, reticent.Received)
    assert_type(received.count("flu").estimate, float)
    assert_type(reticent.__version__, str)
    try:
        raise reticent.GuaranteeError("no")
    except reticent.ReticentError as error:
        assert_type(error.exit_code, int)
        assert_type(error.hint, str)
"""
WRONG = """
import reticent

reticent.anonymize("a.csv")
reticent.anonymize("a.csv", "p.yaml", seeds=1)
reticent.Release.to_dir(3)
reticent.nobody
"""
CONFIG = '{"typeCheckingMode": "strict", "reportMissingTypeStubs": false, "reportUnusedExpression": false}'


def mypy(file):
    """With what it understood of the package kept next to the file, for the second question."""
    return [sys.executable, "-m", "mypy", "--strict", "--cache-dir", file.parent / "cache", "--config-file=", file]


def pyright(file):
    """Pyright itself where it is installed, or basedpyright, which needs no further download."""
    name = next((name for name in ("pyright", "basedpyright") if shutil.which(name, path=PATH)), None)
    if name is None:
        pytest.skip("neither pyright nor basedpyright is installed")
    (file.parent / "pyrightconfig.json").write_text(CONFIG)
    return [shutil.which(name, path=PATH), "--pythonpath", sys.executable, "--project", file.parent, file]


PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin"


def check(checker, text, folder):
    file = folder / "consumer.py"
    file.write_text(text)
    source = str(Path(reticent.__file__).parent.parent)
    env = {"PATH": f"{PATH}:/bin", "HOME": str(folder), "MYPYPATH": source, "PYTHONPATH": source}
    return subprocess.run(checker(file), cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_consumer_is_understood_and_its_mistakes_are_found(checker, tmp_path):
    done = check(checker, RIGHT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = check(checker, WRONG, tmp_path)
    assert done.returncode == 1
    for line in (4, 5, 6, 7):
        assert f"consumer.py:{line}:" in done.stdout, done.stdout
