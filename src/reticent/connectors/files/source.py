"""Open a path, a URL, ``-`` for standard input, or a binary stream.

URLs (object stores and web servers) are read through fsspec with the credentials of the environment. Gzip is unpacked,
and so is the only file of a zip archive, or the file named after `!`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from reticent.connectors.files.magic import hint_for, office_kind
from reticent.errors import ConnectorError, DataError, PolicyError

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_CORRUPT_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


def split_member(source: str) -> tuple[str, str | None]:
    """Split a path from the part after `!`; an existing file with `!` in its name stays whole.

    >>> split_member("visits.zip!2024/visits.csv")
    ('visits.zip', '2024/visits.csv')
    """
    outer, mark, inner = source.partition("!")
    if not mark or not inner or ("://" not in source and Path(source).exists()):
        return source, None
    return outer, inner


def corrupt_zip_error(name: str) -> DataError:
    """Return the error for an archive that cannot be unpacked."""
    return DataError(f"{name} is a corrupt zip archive.", hint="Pack or copy it again.")


SourceLike = str | os.PathLike[str] | BinaryIO

# Enough for any reasonable header and about a thousand rows to guess the dialect from.
SAMPLE = 1 << 20
_PART = 16 << 20
_GZIP = b"\x1f\x8b"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class _Replay(io.RawIOBase):
    """A stream whose first bytes have been read already; every read is filled, as the Arrow format expects."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = sys.maxsize if size < 0 else size
        part, self._head = self._head[:size], self._head[size:]
        return part + _read_fully(self._rest, size - len(part))


@dataclass(frozen=True)
class OpenInput:
    """An open source: its name for messages, first bytes and stream; `inner` names a sheet or an archive member."""

    name: str
    head: bytes
    stream: BinaryIO
    path: Path | None
    inner: str | None = None
    workbook: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether the sample is the whole source."""
        return len(self.head) < SAMPLE


@contextlib.contextmanager
def open_input(source: SourceLike) -> Iterator[OpenInput]:
    """Open a source for one pass."""
    with contextlib.ExitStack() as stack:
        outer, inner = split_member(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else (source, None)
        opened = replace(_unpack(*_open_raw(outer, stack), stack), inner=inner)
        if opened.head.startswith(ZIP):
            opened = _unzip(opened, stack)
        elif inner is not None and not opened.head.startswith(OLE):
            raise DataError(f"{opened.name} has only one table.", hint="Remove the ! and the text after it.")
        yield opened


def _unpack(name: str, path: Path | None, raw: BinaryIO, stack: contextlib.ExitStack) -> OpenInput:
    with read_errors(name):
        head = _read_fully(raw, SAMPLE)
        if head.startswith(_GZIP):
            raw = cast("BinaryIO", stack.enter_context(gzip.GzipFile(fileobj=_Replay(head, raw))))
            head = _read_fully(raw, SAMPLE)
    if not head:
        raise DataError(f"{name} is empty.", hint="Provide a file with a header line and at least one row.")
    return OpenInput(name, head, cast("BinaryIO", _Replay(head, raw)), path)


def _unzip(opened: OpenInput, stack: contextlib.ExitStack) -> OpenInput:
    """Return a workbook as it is; of an archive, return its only file or the file named after `!`."""
    name, file = opened.name, stack.enter_context(seekable(opened))
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
    except _CORRUPT_ZIP_ERRORS:
        raise corrupt_zip_error(name) from None
    members = [member.filename for member in archive.infolist() if not member.is_dir()]
    files = [member for member in members if not member.startswith("__MACOSX/")]
    kind = office_kind(files)
    if kind == "excel":
        file.seek(0)
        return replace(opened, stream=file, workbook=True)
    if opened.inner is None and kind is not None:
        raise DataError(f"{name} is {kind}, not a table.", hint=hint_for(kind))
    if opened.inner is None and len(files) != 1:
        raise DataError(f"{name} is a zip archive with {len(files)} files.", hint=f"Name one: {name}!FILE.")
    member = opened.inner or files[0]
    if member not in files:
        raise DataError(f"{name}: the archive has no file of that name.", hint=f"List its files: unzip -l {name}.")
    try:
        stream = cast("BinaryIO", stack.enter_context(archive.open(member)))
    except RuntimeError:
        raise DataError(f"{name} is a zip archive with a password.", hint="Unpack it first.") from None
    except _CORRUPT_ZIP_ERRORS:
        raise corrupt_zip_error(name) from None
    return _unpack(f"{name}!{member}", None, stream, stack)


@contextlib.contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Translate errors of reading into ours, which never quote the content."""
    try:
        yield
    except zipfile.BadZipFile:
        raise corrupt_zip_error(name) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{name} is a corrupt gzip file.", hint="Pack or copy it again.") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the read failed"
        raise DataError(f"{name} cannot be read: {reason}.", hint="Check the path and the permissions.") from None


@contextlib.contextmanager
def seekable(source: OpenInput) -> Iterator[BinaryIO]:
    """Give the source as a seekable file; a pipe is first copied to an unnamed temporary file."""
    if source.path is not None:
        with source.path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            if magic != _GZIP:
                yield file
                return
    with tempfile.TemporaryFile() as copy:
        with read_errors(source.name):
            shutil.copyfileobj(source.stream, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)


def _open_raw(source: SourceLike, stack: contextlib.ExitStack) -> tuple[str, Path | None, BinaryIO]:
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            return "standard input", None, sys.stdin.buffer
        if is_remote(os.fspath(source)):
            return redact_url(os.fspath(source)), None, stack.enter_context(open_remote(os.fspath(source)))
        refuse_unknown_scheme(os.fspath(source))
        path = Path(source)
        if path.is_dir():
            raise DataError(f"{path} is a directory.", hint="Name a file in it.")
        with read_errors(str(path)):
            file = stack.enter_context(path.open("rb"))
        return str(path), path if path.is_file() else None, file
    return "the input stream", None, source


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size and (part := stream.read(min(size - len(parts), _PART))):
        parts += part
    return bytes(parts)


SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "az", "https", "http")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_remote(source: str) -> bool:
    """Return whether a source is the URL of a remote file.

    >>> is_remote("s3://bucket/visits.csv"), is_remote("visits.csv")
    (True, False)
    """
    return source.partition("://")[0].lower() in SCHEMES and "://" in source


def redact_url(url: str) -> str:
    """Return a URL for messages, without user, password and query, which may contain a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def refuse_unknown_scheme(source: str) -> None:
    """Refuse a URL with an unknown scheme instead of reporting a missing file."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", source)
    if scheme is not None:
        raise PolicyError(
            f"{scheme[1]}:// is not a supported scheme.",
            hint="Use s3://, gs://, abfs://, https://, or a database: postgresql://, sqlite:///, duckdb:///.",
        )


@contextlib.contextmanager
def open_remote(url: str) -> Iterator[BinaryIO]:
    """Give the file behind a URL for sequential reading; refuse http:// except on this machine."""
    parts = urlsplit(url)
    if parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK:
        raise PolicyError(f"{redact_url(url)}: http:// sends records unencrypted.", hint="Use https://.")
    with _translate_errors(redact_url(url)):
        fsspec = _fsspec()
        file = cast("Any", fsspec.open(url, "rb")).open()
    with contextlib.closing(file):
        yield cast("BinaryIO", _RemoteFile(file, redact_url(url)))


class _RemoteFile:
    """A remote file that raises our errors: the library's errors may contain signatures and URLs."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def read(self, size: int = -1) -> bytes:
        with _translate_errors(self._name):
            return bytes(self._file.read(size))


def _fsspec() -> Any:
    import fsspec

    for name in ("s3fs", "fsspec", "aiobotocore", "gcsfs", "adlfs", "azure"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they log requests
    return fsspec


@contextlib.contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise ConnectorError(
            f"{name}: remote files need more libraries.", hint="Install them: pip install 'reticent[cloud]'."
        ) from None
    except FileNotFoundError:
        raise ConnectorError(f"{name}: no such file.", hint="Check the URL.") from None
    except PermissionError:
        raise ConnectorError(f"{name}: access denied.", hint="Check the credentials.") from None
    except Exception as error:  # noqa: BLE001 - library errors differ and may contain secrets
        raise ConnectorError(
            f"{name} cannot be read ({type(error).__name__}).", hint="Check the URL, the credentials and the network."
        ) from None
