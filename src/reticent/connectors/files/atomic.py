"""Writing a file wholly or not at all: beside its place under a hidden name, then renamed over it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from reticent.disk import open_new, staged_path
from reticent.errors import ConnectorError


@contextlib.contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a binary file that appears at `target`, readable by its owner only, once all of it is on disk.

    Raises:
        ConnectorError: the place cannot be written or the disk is full; whatever was there before still is.
    """
    with write_errors(str(target)):
        path = Path(target).resolve()  # a link keeps pointing, its file changes
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:  # a pipe or a device cannot be renamed over
                yield device
            return
        if path.is_dir():
            raise ConnectorError(f"{target} is a directory.", hint="Name a file in it.")
        with staged_path(path) as draft, os.fdopen(open_new(draft), "wb") as file:
            yield file


@contextlib.contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file that another library fills; it appears at `target` as `atomic_file` says."""
    with write_errors(str(target)), staged_path(Path(target).resolve()) as draft:
        os.close(open_new(draft))
        yield draft


def write_text(target: str | os.PathLike[str], text: str) -> None:
    """Write a small text file, wholly or not at all."""
    with atomic_file(target) as file:
        file.write(text.encode())


@contextlib.contextmanager
def system_errors(words: str, hint: str) -> Iterator[None]:
    """Turn what the system says into a `ConnectorError` that begins with these words."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it failed"
        raise ConnectorError(f"{words}: {reason}.", hint=hint) from None


def write_errors(name: str) -> contextlib.AbstractContextManager[None]:
    """Turn what the system says about writing into a `ConnectorError`."""
    hint = "Nothing was left there. Choose a directory that exists, may be written and has room."
    return system_errors(f"{name} cannot be written", hint)
