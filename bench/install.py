"""Installation: a new environment for the base and for each extra, on every available Python from 3.11 on.

`RETICENT_PYTHONS` names interpreters, separated as in PATH; by default, those on the path and of pyenv, the newest of
each minor version. `RETICENT_EXTRAS` names extras (`base,audit`), `RETICENT_WHEEL` an existing wheel. Others keep the
figures of the last run. pip is not installed in the environments, so that the package brought everything in them;
bytecode counts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
RESULT = TOP / "bench" / "results" / "install.json"
EXTRAS = list(tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"])
# pyspark is published as source only; everything else must have a wheel, or it does not install here.
OPTIONS = ["--quiet", "--only-binary", ":all:", "--no-binary", "pyspark", "--constraint", TOP / "constraints.txt"]
# The modules of an extra that its commands load.
LOADS = {
    "server": "fastapi, nicegui, uvicorn",
    "oidc": "authlib",
    "kafka": "confluent_kafka",
    "spark": "pyspark.sql",
    "postgres": "psycopg, adbc_driver_postgresql",
    "fhir": "fhirpathpy",
    "reproduce": "matplotlib.pyplot, sklearn.linear_model",
    "audit": "scipy.optimize, sklearn.linear_model",
    "excel": "python_calamine",
    "stats": "pyreadstat",
    "cloud": "s3fs, gcsfs, adlfs",
    "duckdb": "duckdb",
    "encryption": "cryptography.fernet",
}
TIMED_IMPORT = "from time import perf_counter as t; a = t(); import reticent; print(t() - a)"


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return size, import time and time of `--help` per Python and extra; the base also releases a table."""
    named = os.environ.get("RETICENT_EXTRAS")
    extras = named.split(",") if named else ["base", "excel"] if quick else ["base", *EXTRAS]
    figures = json.loads(RESULT.read_text())["figures"] if RESULT.exists() and not quick else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = _wheel(folder)
        for version, python in _pythons().items():
            for extra in extras:
                home = folder / f"{version}-{extra}"
                figures.setdefault(version, {})[extra] = _installation(python, wheel, extra, home)
                print(version, extra, figures[version][extra], flush=True)
    return figures


def _wheel(folder: Path) -> Path:
    if named := os.environ.get("RETICENT_WHEEL"):
        return Path(named)
    maturin = Path(sys.executable).parent / "maturin"
    subprocess.run([maturin, "build", "--release", "--quiet", "--out", folder], cwd=TOP, check=True)
    return next(folder.glob("*.whl"))


def _pythons() -> dict[str, Path]:
    """Version -> interpreter."""
    pyenv = sorted(
        (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"), key=lambda path: _version(path.parts[-3])
    )
    on_path = filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 20)))
    named = filter(None, os.environ.get("RETICENT_PYTHONS", "").split(os.pathsep))
    candidates = [Path(each) for each in named] or [*pyenv, *map(Path, on_path)]
    newest: dict[tuple[int, ...], tuple[str, Path]] = {}
    for python in candidates:
        version_output = subprocess.run([python, "-VV"], capture_output=True, text=True, check=False)
        if version_output.returncode == 0 and _version(version := version_output.stdout.split()[1])[:2] >= (3, 11):
            newest[_version(version)[:2]] = version, python
    return dict(newest[minor] for minor in sorted(newest))


def _version(words: str) -> tuple[int, ...]:
    return tuple(int(part) for part in words.split(".") if part.isdigit())


def _installation(python: Path, wheel: Path, extra: str, home: Path) -> dict[str, Any]:
    """Create, measure and remove one environment."""
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    inside = home / "bin" / "python"
    wanted = str(wheel) if extra == "base" else f"{wheel}[{extra}]"
    # uv is faster than pip for the same packages; its installation is smaller by less than 0.1 %.
    uv = shutil.which("uv")
    command = (
        [uv, "pip", "install", "--compile-bytecode", "--python", inside]
        if uv
        else [sys.executable, "-m", "pip", "--python", inside, "install"]
    )
    command += [*OPTIONS, wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if done.returncode:
            return {"does not install": done.stderr.strip().splitlines()[-1]}
        works = _releases(home) if extra == "base" else _loads(inside, extra)
        return {**_size(home), **_times(home), **works}
    finally:
        shutil.rmtree(home)


def _size(home: Path) -> dict[str, Any]:
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    bytecode = sum(path.stat().st_size for path in files if path.suffix == ".pyc")
    packages = len(list(distributions(path=[str(next((home / "lib").glob("python3*/site-packages")))])))
    return {
        "bytes": size,
        "MB": size / 1e6,
        "MiB": size / 2**20,
        "of which bytecode, MB": bytecode / 1e6,
        "packages": packages,
    }


def _times(home: Path, times: int = 5) -> dict[str, float]:
    """Return the shortest of several runs: wall seconds for the import, and processor seconds for the whole command."""
    imports = [float(_told(home / "bin" / "python", "-c", TIMED_IMPORT)) for _ in range(times)]
    clock, processor = [], []
    for _ in range(times):
        before, start = os.times(), time.perf_counter()
        _told(home / "bin" / "reticent", "--help")
        clock.append(time.perf_counter() - start)
        after = os.times()
        processor.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return {"import_s": min(imports), "help_s": min(clock), "help_processor_s": min(processor)}


def _releases(home: Path) -> dict[str, bool]:
    """Run the two basic commands in the environment."""
    reticent, folder = home / "bin" / "reticent", home / "work"
    folder.mkdir()
    _told(reticent, "datasets", "hospital", "-n", "500", "--seed", "1", "-o", "patients.csv", cwd=folder)
    _told(reticent, "anonymize", "patients.csv", "-p", "patients.policy.yaml", "-o", "release", cwd=folder)
    _told(reticent, "verify", "release", "-p", "patients.policy.yaml", cwd=folder)
    shutil.rmtree(folder)
    return {"anonymize and verify": True}


def _loads(python: Path, extra: str) -> dict[str, bool]:
    for modules in LOADS.values() if extra == "all" else [LOADS[extra]]:
        _told(python, "-c", f"import reticent.api, {modules}")
    return {"loads": True}


def _told(*command: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def table() -> str:
    """Return the figures as in docs/deploy.md: megabytes, the slowest import, the processor time of `--help`."""
    figures = json.loads(RESULT.read_text())["figures"]
    versions = sorted(figures, key=_version)
    heads = ["", "packages", *(".".join(version.split(".")[:2]) for version in versions), "import", "`--help`"]
    lines = [heads, ["---"] * len(heads)]
    for extra in ["base", *EXTRAS]:
        tried = [figures[version].get(extra, {}) for version in versions]
        counts = sorted({each["packages"] for each in tried if "packages" in each})
        packages = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "-"
        sizes = [
            f"{each['MB']:,.0f}" if "MB" in each else "does not install" if each else "not tried" for each in tried
        ]
        slowest = [f"{max(each.get(time, 0) for each in tried):.2f} s" for time in ("import_s", "help_processor_s")]
        lines.append([extra if extra == "base" else f"`{extra}`", packages, *sizes, *slowest])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
