"""Planted bugs: each mutant is applied to a copy of the source, and the tests it names must fail.

    python tests/mutants/run.py            all of them
    python tests/mutants/run.py gate       those whose name or file holds a word

The lists are the `*.toml` files beside this one: name, file, find (which stands exactly once in the file), replace, tests. A mutant
of the core is compiled first. A test that fails without any mutant proves nothing, so the named tests run once unchanged.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent
_FAILED = 1
"""pytest's exit code when tests ran and some failed; any other one is no proof."""


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]

    @property
    def native(self) -> bool:
        """Whether the core must be compiled again."""
        return self.file.startswith("core/")


def mutants(word: str = "") -> list[Mutant]:
    """All listed mutants whose name or file holds the word."""
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(LISTS.glob("*.toml"))]
    rows = [Mutant(**{**row, "tests": tuple(row["tests"])}) for listed in lists for row in listed["mutant"]]
    return [mutant for mutant in rows if word in mutant.name or word in mutant.file]


def misplaced(mutant: Mutant) -> str:
    """Why a mutant cannot be applied; empty when it can."""
    path = ROOT / mutant.file
    if not path.is_file():
        return f"{mutant.file} is not there"
    times = path.read_text(encoding="utf-8").count(mutant.find)
    if times != 1:
        return f"the text to find stands {times} times in {mutant.file}"
    return "" if mutant.find != mutant.replace else "it changes nothing"


def survives(mutant: Mutant) -> str:
    """Why a mutant was not killed; empty when a named test fails because of it."""
    if reason := misplaced(mutant):
        return reason
    with tempfile.TemporaryDirectory(prefix="reticent-mutant-") as folder:
        source = Path(folder) / "src"
        # With its bytecode, which holds for every file but the changed one: compiling the package takes longer than most tests.
        shutil.copytree(ROOT / "src", source)
        if mutant.native:
            if not _compiled(mutant, Path(folder), source):
                return "the core does not compile"
        else:
            _change(Path(folder) / mutant.file, mutant)
        code = run_tests(mutant.tests, source)
    return "" if code == _FAILED else ("no test fails" if code == 0 else f"the tests did not run (exit {code})")


def run_tests(tests: tuple[str, ...], source: Path) -> int:
    """The exit code of pytest over some tests, with the package taken from a folder."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    env = os.environ | {"PYTHONPATH": str(source)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False).returncode


def _change(path: Path, mutant: Mutant) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(mutant.find, mutant.replace), encoding="utf-8")


def _compiled(mutant: Mutant, folder: Path, source: Path) -> bool:
    shutil.copytree(ROOT / "core", folder / "core", ignore=shutil.ignore_patterns("target"))
    _change(folder / mutant.file, mutant)
    target = ROOT / "core" / "target" / "mutants"
    command = ["cargo", "build", "--quiet", "--release", "--features", "extension-module"]
    env = os.environ | {"CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(command, cwd=folder / "core", env=env, capture_output=True, check=False)
    if done.returncode == 0:
        shutil.copy(target / "release" / "lib_core.so", source / "reticent" / "_core.abi3.so")
    return done.returncode == 0


def main() -> int:
    """Tries the mutants; the exit code says whether one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="")
    word, began = parser.parse_args().word, time.monotonic()
    listed = mutants(word)
    tests = tuple(sorted({test for mutant in listed for test in mutant.tests}))
    if not listed or run_tests(tests, ROOT / "src") != 0:
        print("The named tests do not pass without a mutant." if listed else "There is no such mutant.")
        return 2
    plain, native = ([mutant for mutant in listed if mutant.native is kind] for kind in (False, True))
    reasons = []
    # The compiler uses every core and one folder, so mutants of the core come one by one.
    with ThreadPoolExecutor(2) as pool:
        for mutant, reason in zip(plain + native, chain(pool.map(survives, plain), map(survives, native)), strict=True):
            reasons.append(reason)
            print(
                f"  {'survives' if reason else 'killed  '}  {mutant.name}{f': {reason}' if reason else ''}", flush=True
            )
    alive = sum(map(bool, reasons))
    print(f"{len(listed) - alive} of {len(listed)} mutants killed in {time.monotonic() - began:.0f} s.")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
