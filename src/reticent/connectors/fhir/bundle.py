"""Read the entries of a Bundle one at a time, however large the JSON document is.

A document of a few megabytes is parsed whole. In a larger one, braces outside strings are counted block by block, so
that only one entry is in memory. The text around the entries is parsed at the end. A document that is cut off, or that
continues after its end, is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import orjson

from reticent.errors import DataError

MAX_WHOLE = 4 << 20
"""Documents smaller than this are parsed at once."""
MAX_ENTRY = 64 << 20
"""Size limit for one entry, and for the text around the entries."""

_BLOCK = 1 << 22
_TYPES = ("collection", "transaction", "batch", "searchset")
_ENTRY = re.compile(rb'"entry"\s*:\s*$')
_DEPTH_CHANGE = np.zeros(256, dtype=np.int8)
_DEPTH_CHANGE[[ord("{"), ord("[")]] = 1
_DEPTH_CHANGE[[ord("}"), ord("]")]] = -1
LOG = logging.getLogger(__name__)


def iter_document(name: str, stream: BinaryIO) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every resource of a Bundle with its place, or the document itself if it is one resource."""
    start = stream.read(MAX_WHOLE)
    if len(start) < MAX_WHOLE:
        yield from resources_of(name, _parse(name, start))
        return
    entries = _EntryScanner(name)
    for raw in entries.split(start, stream):
        entry = _parse(f"{name}, entry {entries.number}", raw)
        yield from _resources_of_entry(f"{name}, entry {entries.number}", entry)
    _check_bundle(name, entries.envelope())


def resources_of(name: str, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the resources of a parsed document: the entries of a Bundle, otherwise the document itself."""
    if type(content) is not dict or type(content.get("resourceType")) is not str:
        raise DataError(f"{name}: not a FHIR resource.", hint="Give every resource a resourceType; export again.")
    if content["resourceType"] != "Bundle":
        yield name, content
        return
    _check_bundle(name, content)
    for number, entry in enumerate(content.get("entry", []), 1):
        yield from _resources_of_entry(f"{name}, entry {number}", entry)


def _resources_of_entry(place: str, entry: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if type(entry) is not dict:
        raise DataError(f"{place}: not an entry of a Bundle.", hint="Export the Bundle again.")
    request, resource = entry.get("request"), entry.get("resource")
    if resource is None or (type(request) is dict and request.get("method") == "DELETE"):
        return
    if type(resource) is not dict or type(resource.get("resourceType")) is not str:
        raise DataError(f"{place}: not a FHIR resource.", hint="Give every entry a resource with a resourceType.")
    if resource["resourceType"] == "Bundle":
        raise DataError(f"{place}: a Bundle inside a Bundle.", hint="Export the inner Bundle as a separate file.")
    address = entry.get("fullUrl")
    # Within a transaction, references use fullUrl, whatever id the resource has.
    if type(address) is str and (address.startswith("urn:") or "id" not in resource):
        resource["id"] = address.rpartition("/")[2].rpartition(":")[2]
    yield place, resource


def _check_bundle(name: str, content: dict[str, Any]) -> None:
    if content.get("type") not in _TYPES:
        raise DataError(
            f"{name}: the Bundle's type is none of {', '.join(_TYPES)}.",
            hint="Export the resources as a collection; a history or a response cannot be read.",
        )
    if type(content.get("entry", [])) is not list:
        raise DataError(f"{name}: the Bundle's entry is not a list.", hint="Export the Bundle again.")
    links = content.get("link")
    if type(links) is list and any(type(link) is dict and link.get("relation") == "next" for link in links):
        LOG.warning("%s is one page of a search result; the other pages are missing.", name)


def _parse(place: str, raw: bytes) -> Any:
    try:
        return orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        raise DataError(f"{place}: not valid JSON.", hint="Export it again; it may have been cut off.") from None


class _EntryScanner:
    """Finds the entries of a Bundle block by block: quotes delimit strings, braces outside strings give the depth."""

    def __init__(self, name: str) -> None:
        self.name, self.number = name, 0
        self._depth, self._in_string = 0, False
        self._open: bytearray | None = None  # text of the current entry
        self._in_entries = False  # inside the list of entries
        self._envelope = bytearray()

    def split(self, start: bytes, stream: BinaryIO) -> Iterator[bytes]:
        """Yield the text of each entry."""
        block = start
        while block:
            while block.endswith(b"\\") and (more := stream.read(1)):  # do not cut an escape sequence
                block += more
            yield from self._scan(block)
            block = stream.read(_BLOCK)

    def envelope(self) -> dict[str, Any]:
        """Return the document without its entries."""
        content = _parse(self.name, bytes(self._envelope))
        if type(content) is not dict or content.get("resourceType") != "Bundle":
            raise DataError(f"{self.name}: a large document that is not a Bundle.", hint="Provide a Bundle or NDJSON.")
        return content

    def _scan(self, block: bytes) -> Iterator[bytes]:
        places, steps, depths = self._braces(block)
        # Only braces that open or close the list of entries (depth 2) or an entry (depth 3) matter.
        opens = (steps > 0) & ((depths == 2) | (depths == 3))
        events = np.flatnonzero(opens | ((steps < 0) & ((depths == 1) | (depths == 2))))
        at = 0  # everything before this position is done
        for place, step, depth in zip(
            places[events].tolist(), steps[events].tolist(), depths[events].tolist(), strict=True
        ):
            if step > 0 and depth == 2 and block[place : place + 1] == b"[":
                self._extend_envelope(block[at : place + 1])
                at = place + 1
                self._in_entries = _ENTRY.search(self._envelope[-64:-1]) is not None
            elif self._in_entries and step > 0 and depth == 3:
                self._check_separator(block[at:place])
                at, self._open = place, bytearray()
            elif self._in_entries and step < 0 and depth == 2 and self._open is not None:
                self.number += 1
                yield bytes(self._open + block[at : place + 1])
                at, self._open = place + 1, None
            elif self._in_entries and step < 0 and depth == 1:
                self._check_separator(block[at:place])
                at, self._in_entries = place, False
        self._finish_block(block[at:])

    def _finish_block(self, rest: bytes) -> None:
        if self._open is not None:
            self._open += rest
            self._check_size(self._open)
        elif self._in_entries:
            self._check_separator(rest)
        else:
            self._extend_envelope(rest)

    def _extend_envelope(self, text: bytes) -> None:
        self._envelope += text
        self._check_size(self._envelope)

    def _check_size(self, text: bytearray) -> None:
        if len(text) > MAX_ENTRY:
            raise DataError(
                f"{self.name}, entry {self.number + 1}: larger than {MAX_ENTRY >> 20} MB.", hint="Export it again."
            )

    def _check_separator(self, text: bytes) -> None:
        if text.strip(b", \t\r\n"):
            raise DataError(
                f"{self.name}, entry {self.number + 1}: not an entry of a Bundle.", hint="Export the Bundle again."
            )

    def _braces(self, block: bytes) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return places, steps and depths of the braces and brackets outside strings."""
        text = np.frombuffer(block, dtype=np.uint8)
        quotes = _unescaped_quotes(text, np.flatnonzero(text == ord('"')))
        step = _DEPTH_CHANGE[text]
        places = np.flatnonzero(step)
        outside = (np.searchsorted(quotes, places) + self._in_string) % 2 == 0
        places = places[outside]
        steps = step[places].astype(np.int64)
        depths = self._depth + np.cumsum(steps)
        if len(depths):
            self._depth = int(depths[-1])
            if int(depths.min()) < 0:
                raise DataError(f"{self.name}: not valid JSON.", hint="Export it again.")
        self._in_string ^= bool(len(quotes) % 2)
        return places, steps, depths


def _unescaped_quotes(text: np.ndarray[Any, Any], quotes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the quotes preceded by an even number of backslashes."""
    escaped = np.zeros(len(quotes), dtype=np.bool_)
    before = quotes - 1
    running = (before >= 0) & (text[before] == ord("\\"))
    while running.any():
        escaped ^= running
        before = before - 1
        running &= (before >= 0) & (text[before] == ord("\\"))
    return quotes[~escaped]
