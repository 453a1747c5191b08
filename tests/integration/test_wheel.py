"""The wheel: built once, installed into a clean environment without Rust, it runs the demo and knows its version."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    maturin = Path(sys.executable).parent / "maturin"
    if not maturin.is_file() or shutil.which("cargo") is None:
        pytest.skip("maturin and cargo build the wheel; make setup brings the one, rustup the other")
    out = tmp_path_factory.mktemp("wheel")
    command = [maturin, "build", "--release", "--quiet", "--out", out, "--manifest-path", TOP / "core" / "Cargo.toml"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """An environment with the wheel in it; what it depends on is borrowed from here, since that part is pip's."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": home, "platbase": home}))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel]
    subprocess.run(command, check=True, capture_output=True)
    (site / "borrowed.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return home


def run(home, *arguments, cwd):
    env = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(cwd), "LANG": os.environ.get("LANG", "C.UTF-8")}
    command = [home / "bin" / "python", *arguments]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_wheel_runs_the_demo_without_rust(clean, tmp_path):
    show = "import reticent, reticent._core; print(reticent.__file__, reticent._core.__file__)"
    assert run(clean, "-c", show, cwd=tmp_path).stdout.count(str(clean)) == 2
    assert run(clean, "-m", "reticent", "--version", cwd=tmp_path).stdout.startswith("reticent ")
    demo = run(clean, "-m", "reticent", "demo", "--rows", "1000", "-o", "out", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert "Every claim holds" in demo.stderr


def test_completion_is_there(clean, tmp_path):
    shown = run(clean, "-m", "reticent", "--help", cwd=tmp_path)
    assert "--install-completion" in shown.stdout
