"""What surrounds the package: one version, a build that says what it lacks, a container file and workflows that name what exists."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from bench import install

TOP = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))


def test_one_version_everywhere():
    version = PROJECT["project"]["version"]
    assert tomllib.loads((TOP / "core" / "Cargo.toml").read_text())["package"]["version"] == version
    assert yaml.safe_load((TOP / "CITATION.cff").read_text())["version"] == version


def test_a_source_distribution_without_rust_fails_at_once_and_says_what_to_install():
    code = "import reticent_build; reticent_build.get_requires_for_build_wheel()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TOP / "scripts" / "backend",
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install --only-binary reticent" in done.stderr
    assert "install Rust" in done.stderr


def steps():
    """The instructions of the container file, each on one line."""
    text = (TOP / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("command", [words for word, words in steps() if word == "RUN"])
def test_every_command_of_the_container_file_is_a_shell_command(command):
    subprocess.run(["sh", "-n", "-c", command], check=True)


def test_the_container_file_names_what_exists():
    """The wheel it builds is built and run in test_wheel.py; here are the names that it uses around it."""
    text = (TOP / "deploy" / "Dockerfile").read_text()
    extras = re.search(r"\.whl\)\[([a-z,]+)\]", text)[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    entry = next(words for word, words in steps() if word == "ENTRYPOINT")
    assert json.loads(entry)[0] in PROJECT["project"]["scripts"]
    needed = "pip install --no-cache-dir " + shlex.quote(next(r for r in PROJECT["build-system"]["requires"]))
    assert needed.replace("'", '"') in text, "the image builds with the maturin that the project asks for"
    for word, words in steps():
        if word == "COPY" and not words.startswith("--from"):
            assert all((TOP / source).exists() for source in words.split()[:-1])


def test_the_image_gets_what_the_build_reads():
    ignored = {line.strip() for line in (TOP / ".dockerignore").read_text().splitlines()}
    needed = ("src", "core", "scripts", "scripts/backend", "README.md", "LICENSE", "pyproject.toml", "constraints.txt")
    assert not ignored & set(needed)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_what_the_makefile_has(file):
    jobs = yaml.safe_load(file.read_text())["jobs"]
    commands = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    targets = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|&& )make ([a-z]+)", commands, flags=re.MULTILINE)) <= targets
    groups = set(re.findall(r"--group ([a-z]+)", commands))
    assert groups <= set(PROJECT["dependency-groups"])
    for place in re.findall(r"tests/[\w/.]+", commands):
        assert (TOP / place).exists(), place


def test_the_sizes_of_an_installation_are_those_that_were_measured():
    assert install.table() in (TOP / "docs" / "deploy.md").read_text(), "python -m bench.install prints the table"
    assert set(install.LOADS) == set(PROJECT["project"]["optional-dependencies"]) - {"all"}
