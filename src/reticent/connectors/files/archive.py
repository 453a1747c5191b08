"""One file out of a zip archive: the only one in it, or the one named after `!`."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from reticent.errors import DataError

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


def split(source: str) -> tuple[str, str | None]:
    """A path and what is named in it after `!`; a file whose own name has an `!` stays whole.

    >>> split("visits.zip!2024/visits.csv")
    ('visits.zip', '2024/visits.csv')
    """
    outer, mark, inner = source.partition("!")
    if not mark or not inner or ("://" not in source and Path(source).exists()):
        return source, None
    return outer, inner


def names(name: str, file: BinaryIO) -> list[str]:
    """The names in an archive, without folders and what macOS adds."""
    try:
        with zipfile.ZipFile(file) as archive:
            inside = [member for member in archive.infolist() if not member.is_dir()]
    except DAMAGED:
        raise damaged(name) from None
    return [member.filename for member in inside if not member.filename.startswith("__MACOSX/")]


def open_member(name: str, file: BinaryIO, inner: str | None, stack: contextlib.ExitStack) -> tuple[str, BinaryIO]:
    """The one file of an archive, or the one that is named, and its name for messages."""
    inside = names(name, file)
    if inner is None and len(inside) != 1:
        raise DataError(f"{name} is a zip archive with {len(inside)} files.", hint=f"Name one: {name}!FILE.")
    member = inside[0] if inner is None else inner
    if member not in inside:
        raise DataError(f"{name}: no file of that name is in the archive.", hint=f"See its names: unzip -l {name}.")
    archive = stack.enter_context(zipfile.ZipFile(file))
    try:
        stream = stack.enter_context(archive.open(member))
    except RuntimeError:
        raise DataError(f"{name} is a zip archive with a password.", hint="Unpack it first.") from None
    except DAMAGED:
        raise damaged(name) from None
    return f"{name}!{member}", cast("BinaryIO", stream)


def damaged(name: str) -> DataError:
    """The error for an archive that cannot be unpacked."""
    return DataError(f"{name} is a damaged zip archive.", hint="Pack or copy it again.")
