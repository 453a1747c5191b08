"""A policy with all files it names, as one value that can be stored or sent to another machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self

from reticent.disk import OWNER_FILE, make_folder
from reticent.errors import PolicyError
from reticent.policy.prior import report_name

if TYPE_CHECKING:
    from reticent.policy.policy import Policy


@dataclass(frozen=True)
class NamedFile:
    """A file that a policy names.

    Attributes:
        setting: the setting that names the file.
        name: the path as written in the policy.
        secret: whether the file is a key, whose content is not part of the policy's hash.
    """

    setting: str
    name: str
    secret: bool = False


def named_files(policy: Policy) -> Iterator[NamedFile]:
    """Iterate over all files that the policy names."""
    for name, column in policy.columns.items():
        for part in ("hierarchy", "updates"):
            spec = getattr(column, part)
            if spec is not None and spec.file is not None:
                yield NamedFile(f"columns.{name}.{part}", spec.file)
        if column.transform is not None and column.transform.key_file is not None:
            yield NamedFile(f"columns.{name}.transform", column.transform.key_file, secret=True)
    if policy.privacy.k_map is not None:
        yield NamedFile("privacy.k_map", policy.privacy.k_map.file)
    if policy.prior is not None and policy.prior.file is not None:
        yield NamedFile("prior", policy.prior.file)
        report = report_name(policy.prior.file)
        if policy.path(report).is_file():  # only a measured prior has a report
            yield NamedFile("prior.report", report)
    if policy.prior is not None and policy.prior.kernel is not None:
        yield NamedFile("prior.kernel", policy.prior.kernel.file)


@dataclass(frozen=True, repr=False)
class Bundle:
    """The settings of a policy and the contents of its files, by name."""

    settings: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def pack(cls, policy: Policy) -> Self:
        """Read a policy's files into a bundle; refuse files outside the policy's folder."""
        files = {}
        for named in named_files(policy):
            _refuse_outside(named.name)
            try:
                files[named.name] = policy.path(named.name).read_bytes()
            except OSError as error:
                raise PolicyError(
                    f"{named.setting}: cannot read {PurePath(named.name).name} ({error.strerror}).",
                    hint="Correct the path. It is relative to the policy's folder.",
                ) from None
        return cls(policy.to_dict(), files)

    def unpack(self, folder: Path) -> Policy:
        """Write the files into a private folder and return the policy; refuse a policy that names other files."""
        from reticent.policy.policy import Policy

        for name in self.files:
            _refuse_outside(name)
        policy = Policy.from_dict(dict(self.settings), base=folder)
        absent = [named for named in named_files(policy) if named.name not in self.files]
        if absent:
            raise PolicyError(
                f"{absent[0].setting}: {len(absent)} files that the policy names were not sent.",
                hint="Send them with the policy, under the names in the policy.",
            )
        make_folder(folder, parents=True, exist_ok=True)
        for name, content in self.files.items():
            path = folder / name
            make_folder(path.parent, parents=True, exist_ok=True)
            path.touch(mode=OWNER_FILE)
            path.write_bytes(content)
        return policy

    def to_bytes(self) -> bytes:
        """Serialize the bundle, for a store or another machine."""
        files = {name: base64.b64encode(content).decode() for name, content in self.files.items()}
        return json.dumps({"policy": self.settings, "files": files}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a bundle that `to_bytes` wrote."""
        plain = json.loads(data)
        return cls(plain["policy"], {name: base64.b64decode(text) for name, text in plain["files"].items()})


def _refuse_outside(name: str) -> None:
    path = PurePath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise PolicyError(
            "The policy names a file outside its folder.",
            hint="Put the file in the policy's folder and write its name only.",
        )
