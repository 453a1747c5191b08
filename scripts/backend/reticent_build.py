"""The build backend: maturin, used only if Rust is installed.

Otherwise a source distribution would silently download half a gigabyte, or wait for a missing network.
"""

from __future__ import annotations

import shutil
from typing import Any

import maturin
from maturin import build_editable, build_sdist, build_wheel, prepare_metadata_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

MISSING = """
Reticent is built from source here, and that needs Rust 1.85 or later, which is missing.
  Install a wheel instead:  pip install --only-binary reticent reticent
  or install Rust:          see rustup.rs, or your system's package rustup
"""
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what maturin needs; stop at once if Rust is missing."""
    if shutil.which("cargo") is None:
        raise SystemExit(MISSING)
    return list(maturin.get_requires_for_build_wheel(config_settings))


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the same as for a wheel."""
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return maturin's needs: packing the sources needs no Rust."""
    return list(maturin.get_requires_for_build_sdist(config_settings))
