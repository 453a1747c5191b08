"""Recognize files that are not tables by their first bytes, so that the error can name what the file really is.

Short marks made of letters (`BM`, `MZ`) could begin a header, so they count only if the file also has control bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Offset, mark, description; the first match counts.
_BINARY: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF-", "a PDF document"),
    (0, b"\x89PNG\r\n", "an image (PNG)"),
    (0, b"\xff\xd8\xff", "an image (JPEG)"),
    (0, b"GIF8", "an image (GIF)"),
    (0, b"II*\0", "an image (TIFF)"),
    (0, b"MM\0*", "an image (TIFF)"),
    (0, b"BM", "an image (BMP)"),
    (8, b"WEBP", "an image (WebP)"),
    (4, b"ftypheic", "an image (HEIC)"),
    (128, b"DICM", "a DICOM image"),
    (8, b"WAVE", "a sound recording (WAV)"),
    (8, b"AVI ", "a video (AVI)"),
    (4, b"ftyp", "a video (MP4)"),
    (0, b"\x1aE\xdf\xa3", "a video (Matroska)"),
    (0, b"ID3", "a sound recording (MP3)"),
    (0, b"OggS", "a sound recording (Ogg)"),
    (0, b"fLaC", "a sound recording (FLAC)"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\xfd7zXZ\0", "an xz file"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (0, b"\x04\x22\x4d\x18", "an LZ4 file"),
    (0, b"\x7fELF", "a program (ELF)"),
    (0, b"MZ", "a program (Windows)"),
    (0, b"\xcf\xfa\xed\xfe", "a program (macOS)"),
    (0, b"\xca\xfe\xba\xbe", "a Java class"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"SQLite format 3\0", "a SQLite database"),
    (8, b"DUCK", "a DuckDB database"),
    (4, b"Standard Jet DB", "an Access database"),
    (4, b"Standard ACE DB", "an Access database"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"CDF\x01", "a NetCDF file"),
    (0, b"CDF\x02", "a NetCDF file"),
    (0, b"MATLAB 5.0", "a MATLAB file"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x80\x04\x95", "a Python pickle"),
    (0, b"\x80\x05\x95", "a Python pickle"),
    (0, b"RDX2\n", "an R workspace"),
    (0, b"RDX3\n", "an R workspace"),
    (0, b"X\n\0\0\0", "an R object (RDS)"),
    (0, b"Obj\x01", "an Avro file"),
    (0, b"ORC", "an ORC file"),
    (0, b"wOFF", "a font"),
    (0, b"wOF2", "a font"),
    (0, b"\0\x01\0\0\0", "a font"),
)
_TEXT: tuple[tuple[bytes, str], ...] = (
    (rb"<!doctype html|<html[\s>]", "an HTML page"),
    (rb"<svg[\s>]|<\?xml[^>]*>\s*(<!--.*?-->\s*)?<svg[\s>]", "an image (SVG)"),
    (rb"<\?xml[\s?]|<[a-z][\w:.-]*(\s[^<>\n]*)?/?>\s*<", "an XML document"),
    (rb"\{\\rtf", "an RTF document"),
    (rb"%!ps", "a PostScript document"),
    (rb"\\documentclass", "a LaTeX document"),
    (rb"#!\s*/", "a script"),
    (rb"-----begin ", "a key, a certificate or an encrypted message"),
    (rb"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (rb"--\s*(\r?\n--\s*)?(postgresql database|mysql|mariadb) dump|pragma foreign_keys", "an SQL dump"),
    (rb"begin:vcalendar", "a calendar"),
    (rb"begin:vcard", "an address book"),
    (rb"(return-path|received|delivered-to|mime-version): ", "an e-mail"),
    (rb"ascii spss port file", "an SPSS portable file"),
    (rb"msh\|", "a file of HL7 messages"),
    (rb"\[\s*(\{|\])", "a JSON list"),
)
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
