"""A policy and the files it names, as one value that the store can keep and no path can escape from."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.check import check

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, repr=False)
class Bundle:
    """What a client sends: the policy's own settings, and file name -> text."""

    policy: dict[str, Any]
    files: dict[str, str]

    @classmethod
    def parse(cls, policy: dict[str, Any] | str, files: dict[str, str] | None = None) -> Bundle:
        """From plain values or from the text of a YAML or JSON file."""
        if isinstance(policy, str):
            try:
                policy = yaml.safe_load(policy)
            except (yaml.YAMLError, RecursionError, ValueError):
                raise PolicyError("The policy is not readable as YAML.", hint="Check its indentation.") from None
        if not isinstance(policy, dict) or not all(isinstance(key, str) for key in policy):
            raise PolicyError(
                "A policy is a mapping that starts with 'version: 1'.", hint="See reticent policy schema."
            )
        try:
            json.dumps([policy, files], ensure_ascii=False).encode()
        except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
            raise PolicyError("The policy holds something that is not text or number.", hint="Correct it.") from None
        return cls(policy, files or {})

    def to_bytes(self) -> bytes:
        """For the store."""
        return json.dumps({"policy": self.policy, "files": self.files}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Bundle:
        """From the store."""
        return cls(**json.loads(data))


class Shelf:
    """Policies in force, with their files laid out in a private folder that goes when the server does."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="reticent-")  # mode 0700
        self._made = 0

    def close(self) -> None:
        """Removes the files."""
        self._folder.cleanup()

    def policy(self, bundle: Bundle) -> Policy:
        """The policy of a bundle; refuses one that names a file it does not bring along."""
        base = Path(self._folder.name) / str(self._made)
        try:
            policy = Policy.from_dict(bundle.policy, base=base)
        except (RecursionError, OverflowError):
            raise PolicyError("The policy is nested too deeply.", hint="See reticent policy schema.") from None
        named = _named(policy)
        for name in {*named, *bundle.files}:
            if not _FILE.fullmatch(name):
                raise PolicyError("A policy's files have plain names, without folders.", hint="Such as prior.csv.")
        if absent := [name for name in named if name not in bundle.files]:
            raise PolicyError(f"The policy names {len(absent)} files that were not sent.", hint="Send them in `files`.")
        self._made += 1
        base.mkdir(mode=0o700)
        for name, text in bundle.files.items():
            (base / name).write_text(text, encoding="utf-8")
        check(policy)
        policy.hash  # noqa: B018 - reads every file once, so that a bad one is refused here
        return policy


def _named(policy: Policy) -> list[str]:
    specs = [spec for column in policy.columns.values() for spec in (column.hierarchy, column.updates)]
    named = [spec.file for spec in specs if spec is not None and spec.file is not None]
    return named + ([policy.stream.prior.file] if policy.stream.prior is not None else [])
