"""Write a file completely or not at all: under a hidden name next to the target, then renamed."""

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
    """Give a binary file that appears at `target`, readable by its owner only, once it is completely on disk.

    Raises:
        ConnectorError: the target cannot be written or the disk is full; an existing file stays unchanged.
    """
    with write_errors(str(target)):
        path = Path(target).resolve()  # replace the file behind a link, not the link
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:  # a pipe or a device cannot be replaced by renaming
                yield device
            return
        if path.is_dir():
            raise ConnectorError(f"{target} is a directory.", hint="Name a file in it.")
        with staged_path(path) as draft, os.fdopen(open_new(draft), "wb") as file:
            yield file


@contextlib.contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file for another library to fill; it appears at `target` as with `atomic_file`."""
    with write_errors(str(target)), staged_path(Path(target).resolve()) as draft:
        os.close(open_new(draft))
        yield draft


def write_text(target: str | os.PathLike[str], text: str) -> None:
    """Write a small text file, completely or not at all."""
    with atomic_file(target) as file:
        file.write(text.encode())


@contextlib.contextmanager
def system_errors(words: str, hint: str) -> Iterator[None]:
    """Translate an OSError into a `ConnectorError` that begins with `words`."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it failed"
        raise ConnectorError(f"{words}: {reason}.", hint=hint) from None


def write_errors(name: str) -> contextlib.AbstractContextManager[None]:
    """Translate an OSError during writing into a `ConnectorError`."""
    hint = "Choose an existing directory with write permission and free space. No partial file was left."
    return system_errors(f"{name} cannot be written", hint)
