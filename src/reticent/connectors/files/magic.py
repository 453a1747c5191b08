"""Recognize files that are not tables by their first bytes, so that the error can name what the file really is.

Short marks made of letters (`BM`, `MZ`) could begin a header, so they count only if the file also has control bytes.
The marks are in `magic.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_LINES = [line.split(" | ") for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()[1:]]
_BINARY = [
    (int(offset), mark.encode().decode("unicode_escape").encode("latin-1"), words)
    for offset, mark, words in _LINES
    if offset != "text"
]
_TEXT = [(pattern.encode(), words) for offset, pattern, words in _LINES if offset == "text"]
_HINTS = {
    "a SQLite database": "Read it as sqlite:///FILE?table=NAME.",
    "a DuckDB database": "Read it as duckdb:///FILE?table=NAME.",
    "a JSON list": "Write one JSON object per line (NDJSON), without the brackets.",
    "a file of HL7 messages": "Use reticent stream.",
    "a Git LFS pointer, not the file itself": "Fetch the file: git lfs pull.",
}
_PACKED = ("archive", "bzip2", "xz file", "Zstandard", "LZ4")


def kind_of(head: bytes) -> str | None:
    r"""Return a description of a file that is not a table; None if it may be a table.

    >>> kind_of(b"%PDF-1.7\n")
    'a PDF document'
    >>> kind_of(b"BMI,age\n31,40\n") is None
    True
    """
    for offset, mark, words in _BINARY:
        if head.startswith(mark, offset) and (_is_binary(mark) or len(mark) >= 5 or _is_binary(head[:512])):
            return words
    start = head[:4096].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((words for pattern, words in _TEXT if re.match(pattern, start, re.DOTALL)), None)


def hint_for(kind: str) -> str:
    """Return the hint for a file of that kind."""
    if any(word in kind for word in _PACKED):
        return "Unpack it first and name one of its files."
    return _HINTS.get(kind, "Export the table as CSV, Parquet, Arrow, NDJSON, Excel, SAS, SPSS or Stata.")


def _is_binary(data: bytes) -> bool:
    return any(byte < 9 or 13 < byte < 32 for byte in data)


def office_kind(names: Iterable[str]) -> str | None:
    """Return what a zip container is, by its file names; `excel` can be read, None is a plain archive."""
    names = set(names)
    marks = {
        "xl/": "excel",
        "word/": "a Word document",
        "ppt/": "a PowerPoint presentation",
        "META-INF/container.xml": "an e-book (EPUB)",
        "AndroidManifest.xml": "an Android application",
        "META-INF/MANIFEST.MF": "a Java archive",
        "content.xml": "an OpenDocument file",
    }
    for mark, words in marks.items():
        if any(name.startswith(mark) for name in names):
            return words
    return "a NumPy archive" if names and all(name.endswith(".npy") for name in names) else None


def ole_kind(data: bytes) -> str:
    """Return what an old Office container is, by its streams; `excel` can be read."""
    marks = {
        "EncryptedPackage": "an Office document with a password",
        "Workbook": "excel",
        "Book": "excel",
        "WordDocument": "a Word document",
        "PowerPoint Document": "a PowerPoint presentation",
        "__properties_version1.0": "an Outlook message",
    }
    return next((kind for mark, kind in marks.items() if mark.encode("utf-16-le") in data), "an old Office document")


_STATISTICS = (
    (re.compile(rb"\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92"), "sas7bdat", "SAS"),
    (re.compile(rb"HEADER RECORD\*{7}LIB"), "xport", "SAS"),
    (re.compile(rb"\$FL[23]"), "sav", "SPSS"),
    (re.compile(rb"<stata_dta>|[\x69\x6c-\x73][\x01\x02]\x01\0"), "dta", "Stata"),
)


def program_of(head: bytes) -> tuple[str, str] | None:
    """Return the pyreadstat reader for a file with these first bytes, and the program's name.

    >>> program_of(b"$FL2@(#) SPSS DATA FILE")
    ('sav', 'SPSS')
    """
    return next(((reader, program) for mark, reader, program in _STATISTICS if mark.match(head)), None)
