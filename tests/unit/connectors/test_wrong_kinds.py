"""Files that are no tables are refused by what they are, never by what the wrong parser says."""

import bz2
import gzip
import io
import lzma
import pickle
import re
import sqlite3
import tarfile
import zipfile

import duckdb
import numpy as np
import pytest

from reticent.connectors.files import read_table
from reticent.errors import DataError


def archive(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        for name in names:
            zipped.writestr(name, "a,b\n1,2\n")
    return out.getvalue()


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as packed:
        info = tarfile.TarInfo("a.csv")
        info.size = 8
        packed.addfile(info, io.BytesIO(b"a,b\n1,2\n"))
    return out.getvalue()


def array():
    out = io.BytesIO()
    np.save(out, np.arange(3))
    return out.getvalue()


def ole(stream):
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + stream.encode("utf-16-le") + bytes(400)


WRONG = {
    "PDF": (b"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n", "a PDF document"),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "an image (PNG)"),
    "JPEG": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "an image (JPEG)"),
    "GIF": (b"GIF89a\x01\0\x01\0", "an image (GIF)"),
    "TIFF": (b"II*\0\x08\0\0\0", "an image (TIFF)"),
    "BMP": (b"BM\x46\0\0\0\0\0\0\0\x36\0", "an image (BMP)"),
    "WebP": (b"RIFF\x24\0\0\0WEBPVP8 ", "an image (WebP)"),
    "HEIC": (b"\0\0\0\x18ftypheic\0\0", "an image (HEIC)"),
    "SVG": (b"<?xml version='1.0'?>\n<svg width='1'></svg>", "an image (SVG)"),
    "DICOM": (bytes(128) + b"DICM\x02\0", "a DICOM image"),
    "WAV": (b"RIFF\x24\0\0\0WAVEfmt ", "a sound recording (WAV)"),
    "MP3": (b"ID3\x03\0\0\0\0\0\0", "a sound recording (MP3)"),
    "MP4": (b"\0\0\0\x18ftypisom\0\0", "a video (MP4)"),
    "zip of three": (archive("a.csv", "b.csv", "c.csv"), "a zip archive with 3 files"),
    "empty zip": (archive(), "a zip archive with 0 files"),
    "zip in a zip": (None, "a zip archive inside another archive"),
    "corrupt zip": (archive("a.csv")[:60], "a corrupt zip archive"),
    "Word": (archive("[Content_Types].xml", "word/document.xml"), "a Word document"),
    "PowerPoint": (archive("[Content_Types].xml", "ppt/presentation.xml"), "a PowerPoint presentation"),
    "OpenDocument": (archive("mimetype", "content.xml"), "an OpenDocument file"),
    "Java archive": (archive("META-INF/MANIFEST.MF", "A.class"), "a Java archive"),
    "NumPy archive": (archive("a.npy", "b.npy"), "a NumPy archive"),
    "corrupt workbook": (archive("xl/workbook.xml"), "a corrupt Excel workbook"),
    "old Word": (ole("WordDocument"), "a Word document"),
    "locked workbook": (ole("EncryptedPackage"), "an Office document with a password"),
    "Outlook": (ole("__properties_version1.0"), "an Outlook message"),
    "7-Zip": (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7-Zip archive"),
    "RAR": (b"Rar!\x1a\x07\x01\0", "a RAR archive"),
    "tar": (tar(), "a tar archive"),
    "tar.gz": (gzip.compress(tar()), "a tar archive"),
    "bzip2": (bz2.compress(b"a,b\n1,2\n"), "a bzip2 file"),
    "xz": (lzma.compress(b"a,b\n1,2\n"), "an xz file"),
    "Zstandard": (b"\x28\xb5\x2f\xfd\x24\0", "a Zstandard file"),
    "program": (b"\x7fELF\x02\x01\x01\0", "a program (ELF)"),
    "Windows program": (b"MZ\x90\0\x03\0\0\0", "a program (Windows)"),
    "Access": (b"\0\x01\0\0Standard ACE DB\0", "an Access database"),
    "HDF5": (b"\x89HDF\r\n\x1a\n\0", "an HDF5 file"),
    "NumPy": (array(), "a NumPy array"),
    "pickle": (pickle.dumps({"a": list(range(9))}, 4), "a Python pickle"),
    "R workspace": (gzip.compress(b"RDX3\nX\n\0\0\0\x03"), "an R workspace"),
    "R object": (gzip.compress(b"X\n\0\0\0\x03\0"), "an R object (RDS)"),
    "MATLAB": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(90), "a MATLAB file"),
    "Avro": (b"Obj\x01\x04\x16avro.schema", "an Avro file"),
    "ORC": (b"ORC\n\x0b\x0a\x03\0\0\0", "an ORC file"),
    "HTML": (b"\n<!DOCTYPE html>\n<html><body>Sign in, please</body></html>", "an HTML page"),
    "XML": (b"<?xml version='1.0'?>\n<ClinicalDocument/>", "an XML document"),
    "bare XML": (b"<Bundle xmlns='x'><id value='1'/></Bundle>", "an XML document"),
    "RTF": (b"{\\rtf1\\ansi text}", "an RTF document"),
    "PostScript": (b"%!PS-Adobe-3.0\n", "a PostScript document"),
    "script": (b"#!/bin/sh\necho 1, 2\n", "a script"),
    "key": (b"-----BEGIN PGP MESSAGE-----\n\nabc,def\n", "a key, a certificate or an encrypted message"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer"),
    "SQL dump": (b"--\n-- PostgreSQL database dump\n--\n\nSET x = 0;\n", "an SQL dump"),
    "calendar": (b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", "a calendar"),
    "e-mail": (b"Return-Path: <a@b>\r\nSubject: x, y\r\n\r\nhi\r\n", "an e-mail"),
    "HL7": (b"MSH|^~\\&|A|B|C|D|20240101||ADT^A01|1|P|2.5\r", "a file of HL7 messages"),
    "SPSS portable": (b"ASCII SPSS PORT FILE" + b" " * 60, "an SPSS portable file"),
    "JSON list": (b'[{"a": 1}, {"a": 2}]', "a JSON list"),
}
WRONG["zip in a zip"] = (None, "a zip archive inside another archive")


def nested():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.writestr("inner.zip", archive("a.csv"))
    return out.getvalue()


@pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_a_wrong_kind_is_refused_by_its_name(tmp_path, content, words, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content or nested())
    with pytest.raises(DataError, match=re.escape(words)) as caught:
        read_table(path)
    assert caught.value.hint
    with pytest.raises(DataError, match=re.escape(words)):
        read_table(io.BytesIO(content or nested()))


def test_databases_say_how_they_are_read(tmp_path):
    sqlite3.connect(tmp_path / "a.db").execute("create table t (a)")
    duckdb.connect(tmp_path / "b.db").execute("create table t (a int)").close()
    with pytest.raises(DataError, match=r"a SQLite database.*sqlite:///FILE"):
        read_table(tmp_path / "a.db")
    with pytest.raises(DataError, match=r"a DuckDB database.*duckdb:///FILE"):
        read_table(tmp_path / "b.db")


@pytest.mark.parametrize(
    "header", ["BMI", "MZ", "ORC", "ID3", "GIF8", "BZh", "OggS", "DUCK", "<5", "[a", "MSH", "<b>x"]
)
def test_headers_that_look_like_a_mark_are_headers(header):
    data = f"{header},sex\n31,f\n40,m\n".encode()
    assert read_table(io.BytesIO(data)).column_names == [header, "sex"]
