"""What `pip install reticent` brings is enough to release and to verify; other commands name their extra."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from reticent.cli.failure import EXTRAS

TOP = Path(__file__).parent.parent.parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
BLOCKED = f"""
import sys
for name in {sorted({*EXTRAS, "authlib", "cryptography"})!r}:
    sys.modules[name] = None
from reticent.cli import main
main(sys.argv[1:])
"""
FHIR = """
version: 1
fhir:
  columns:
    sex: Patient.gender
    diagnosis: Condition.code.coding.where(system='http://hl7.org/fhir/sid/icd-10').code
columns:
  sex: quasi
  diagnosis: sensitive
privacy: {k: 2}
"""


def base(*words, cwd):
    command = [sys.executable, "-c", BLOCKED, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    assert base("datasets", "hospital", "-n", "500", "--seed", "1", "-o", "h.csv", cwd=folder).returncode == 0
    done = base("anonymize", "h.csv", "-p", "h.policy.yaml", "-o", "out", "--seed", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    base("datasets", "feed", "-n", "50", "--seed", "1", "-o", "feed.ndjson", cwd=folder)
    with zipfile.ZipFile(folder / "h.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    (folder / "h.sav").write_bytes(b"$FL2@(#) SPSS")
    (folder / "patients.ndjson").write_text('{"resourceType": "Patient", "id": "1", "gender": "female"}\n')
    (folder / "fhir.policy.yaml").write_text(FHIR)
    return folder


def test_the_base_installation_releases_and_verifies(folder):
    done = base("verify", "out", "-p", "h.policy.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("audit", ("audit", "out", "-p", "h.policy.yaml", "-o", "report")),
        ("server", ("serve", "--demo", "--port", "0")),
        ("reproduce", ("reproduce", "delay-free", "--quick", "-o", "plots")),
        ("audit", ("prior", "h.csv", "-p", "h.policy.yaml", "-o", "new")),
        ("kafka", ("stream", "kafka://h/a", "-p", "feed.policy.yaml", "--store", "s.db", "--to", "kafka://h/b")),
        (
            "postgres",
            ("stream", "feed.ndjson", "-p", "feed.policy.yaml", "--store", "postgresql://h/d", "--to", "s.ndjson"),
        ),
        ("postgres", ("anonymize", "postgresql://h/d?table=t", "-p", "h.policy.yaml", "-o", "new")),
        ("duckdb", ("anonymize", "duckdb:///t.db?table=t", "-p", "h.policy.yaml", "-o", "new")),
        ("duckdb", ("anonymize", "h.csv", "--on-disk", "-p", "h.policy.yaml", "-o", "new")),
        ("cloud", ("anonymize", "s3://b/h.csv", "-p", "h.policy.yaml", "-o", "new")),
        ("excel", ("anonymize", "h.xlsx", "-p", "h.policy.yaml", "-o", "new")),
        ("stats", ("anonymize", "h.sav", "-p", "h.policy.yaml", "-o", "new")),
        ("fhir", ("anonymize", "patients.ndjson", "-p", "fhir.policy.yaml", "-o", "new")),
        ("encryption", ("evolve", "init", "hidden.db", "-p", "h.policy.yaml")),
    ],
)
def test_a_command_whose_extra_is_missing_names_it(folder, extra, words, monkeypatch):
    if extra == "encryption":
        base("store", "key", "store.key", cwd=folder)
        monkeypatch.setenv("RETICENT_STORE_KEY", str(folder / "store.key"))
    done = base(*words, cwd=folder)
    assert done.returncode == 5, done.stderr
    assert f"pip install 'reticent[{extra}]'" in done.stderr
    assert not (folder / "new").exists()


def test_every_extra_is_part_of_all_and_every_package_of_an_extra():
    extras = PROJECT["optional-dependencies"]
    together = re.search(r"\[(.*)\]", extras["all"][0])[1].split(",")
    assert together == sorted(set(extras) - {"all"})
    assert set(EXTRAS.values()) <= set(extras)


def test_the_base_has_no_heavy_package():
    names = {re.split(r"[\[>=<]", entry)[0] for entry in PROJECT["dependencies"]}
    assert not names & {"scipy", "scikit-learn", "matplotlib", "nicegui", "pandas", "polars", "duckdb", "pyspark"}
