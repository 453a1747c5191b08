"""Policies in force, with their files laid out in a private folder that goes when the server does."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.policy.check import check
from reticent.policy.yaml_text import parse_yaml

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def parse_policy(policy: dict[str, Any] | str, files: dict[str, str] | None = None) -> Bundle:
    """What a client sends: plain values or the text of a YAML or JSON file, and file name -> text."""
    if isinstance(policy, str):
        policy = parse_yaml(policy, "the policy")[0]
    if not isinstance(policy, dict) or not all(isinstance(key, str) for key in policy):
        raise PolicyError("A policy is a mapping that starts with 'version: 1'.", hint="See reticent policy schema.")
    try:
        json.dumps([policy, files], ensure_ascii=False).encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        raise PolicyError("The policy holds something that is not text or number.", hint="Correct it.") from None
    return Bundle(policy, {name: text.encode() for name, text in (files or {}).items()})


def _remove_stale_folders() -> None:
    """Removes the folders of servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob("reticent-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


class PolicyRegistry:
    """Lays out the files of policies, each in a folder of its own."""

    def __init__(self) -> None:
        _remove_stale_folders()
        self._folder = tempfile.TemporaryDirectory(prefix=f"reticent-{os.getpid()}-")  # mode 0700
        self._count = 0

    @property
    def folder(self) -> Path:
        """The private folder itself."""
        return Path(self._folder.name)

    def close(self) -> None:
        """Removes the files."""
        self._folder.cleanup()

    def policy(self, bundle: Bundle) -> Policy:
        """The policy of a bundle; refuses one that names a file it does not bring along."""
        if not all(_FILE.fullmatch(name) for name in bundle.files):
            raise PolicyError("A policy's files have plain names, without folders.", hint="Such as prior.csv.")
        self._count += 1
        try:
            policy = bundle.unpack(self.folder / str(self._count))
        except (RecursionError, OverflowError):
            raise PolicyError("The policy is nested too deeply.", hint="See reticent policy schema.") from None
        check(policy)
        policy.hash  # noqa: B018 - reads every file once, so that a bad one is refused here
        return policy
