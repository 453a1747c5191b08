"""The policies in use, with their files in a private folder that is deleted when the server stops."""

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
    """Return the policy of a request: a mapping or the text of a YAML or JSON file, and file name -> text."""
    if isinstance(policy, str):
        policy = parse_yaml(policy, "the policy")[0]
    if not isinstance(policy, dict) or not all(isinstance(key, str) for key in policy):
        raise PolicyError("The policy is not a mapping with 'version: 1'.", hint="See reticent policy schema.")
    try:
        json.dumps([policy, files], ensure_ascii=False).encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        raise PolicyError(
            "The policy contains a value that is neither text nor a number.", hint="See reticent policy schema."
        ) from None
    return Bundle(policy, {name: text.encode() for name, text in (files or {}).items()})


def _remove_stale_folders() -> None:
    """Delete the folders of servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob("reticent-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


class PolicyRegistry:
    """Writes the files of each policy into a folder."""

    def __init__(self) -> None:
        _remove_stale_folders()
        self._folder = tempfile.TemporaryDirectory(prefix=f"reticent-{os.getpid()}-")  # mode 0700
        self._count = 0

    @property
    def folder(self) -> Path:
        """The private folder of this server."""
        return Path(self._folder.name)

    def close(self) -> None:
        """Delete the folder."""
        self._folder.cleanup()

    def policy(self, bundle: Bundle) -> Policy:
        """Return the policy of a bundle; reject a policy that names a missing file."""
        if not all(_FILE.fullmatch(name) for name in bundle.files):
            raise PolicyError(
                "A file name of the policy has a folder or special characters.",
                hint="Use plain names, such as prior.csv.",
            )
        self._count += 1
        try:
            policy = bundle.unpack(self.folder / str(self._count))
        except (RecursionError, OverflowError):
            raise PolicyError("The policy is nested too deeply.", hint="See reticent policy schema.") from None
        check(policy)
        policy.hash  # noqa: B018 - reads every file, so that a malformed one is rejected here
        return policy
