"""Files in other places: object stores and web servers, through fsspec; credentials are those of the environment."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from reticent.errors import ConnectorError, PolicyError

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "az", "https", "http")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_place(source: str) -> bool:
    """Whether a source is the address of a file elsewhere.

    >>> is_place("s3://bucket/visits.csv"), is_place("visits.csv")
    (True, False)
    """
    return source.partition("://")[0].lower() in SCHEMES and "://" in source


def shown(url: str) -> str:
    """An address for messages: without user, password and what follows a question mark, where signatures stand."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def refuse_unknown(source: str) -> None:
    """An address whose kind is not known is no missing file."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", source)
    if scheme is not None:
        raise PolicyError(
            f"{scheme[1]}:// is no place that is read.",
            hint="Known are s3://, gs://, abfs://, https://, and databases: postgresql://, sqlite:///, duckdb:///, mysql+pymysql://.",
        )


@contextlib.contextmanager
def open_place(url: str) -> Iterator[BinaryIO]:
    """The file behind an address, read in order; refuses one that would send cells in the clear."""
    parts = urlsplit(url)
    if parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK:
        raise PolicyError(f"{shown(url)}: http:// sends records in the clear.", hint="Use https://.")
    with _errors(shown(url)):
        fsspec = _fsspec()
        file = cast("Any", fsspec.open(url, "rb")).open()
    with contextlib.closing(file):
        yield cast("BinaryIO", _Reads(file, shown(url)))


class _Reads:
    """A remote file whose errors are ours: the library's own may carry signatures and addresses."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def read(self, size: int = -1) -> bytes:
        with _errors(self._name):
            return bytes(self._file.read(size))


def _fsspec() -> Any:
    import fsspec

    for name in ("s3fs", "fsspec", "aiobotocore", "gcsfs", "adlfs", "azure"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they print requests
    return fsspec


@contextlib.contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise ConnectorError(
            f"{name}: places need libraries of their own.", hint="Install them: pip install 'reticent[cloud]'."
        ) from None
    except FileNotFoundError:
        raise ConnectorError(f"{name}: there is no such file.", hint="Check the address.") from None
    except PermissionError:
        raise ConnectorError(f"{name}: you may not read it.", hint="Check the credentials.") from None
    except Exception as error:  # noqa: BLE001 - every library raises its own; none may show what it was told
        raise ConnectorError(
            f"{name} cannot be read ({type(error).__name__}).", hint="Check the address, the credentials, the network."
        ) from None
