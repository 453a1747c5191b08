"""Workbooks, files of statistics programs, archives: the same rows whatever they came in."""

import datetime as dt
import gzip
import io
import subprocess
import sys
import zipfile

import openpyxl
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from reticent.connectors.files import read_batches, read_table
from reticent.errors import DataError, PolicyError

ROWS = {
    "age": [31, 40, None],
    "weight": [70.5, 81.0, 60.25],
    "sex": ["f", "m", None],
    "seen": [dt.date(2024, 1, 5), dt.date(2024, 2, 6), dt.date(2024, 3, 7)],
}


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def sheet():
    return [list(ROWS), *map(list, zip(*ROWS.values(), strict=True))]


def test_a_workbook_keeps_numbers_dates_and_gaps(tmp_path):
    path = workbook(tmp_path / "t.xlsx", Visits=sheet(), Empty=[])
    table = read_table(path)
    assert table.to_pydict() == ROWS
    assert [str(field.type) for field in table.schema] == ["int64", "double", "string", "date32[day]"]
    assert pa.Table.from_batches(list(read_batches(path, batch_rows=2))).equals(table)
    assert read_table(io.BytesIO(path.read_bytes())).equals(table)
    assert next(read_batches(path, columns=["sex"])).schema.names == ["sex"]


def test_one_sheet_of_several_is_named(tmp_path):
    path = workbook(tmp_path / "t.xlsx", Visits=sheet(), Notes=[["a"], ["x"]])
    with pytest.raises(DataError, match="workbook with 2 non-empty sheets") as refused:
        read_table(path)
    assert refused.value.hint == f"Name one: {path}!Visits, {path}!Notes."
    assert read_table(f"{path}!Notes").to_pydict() == {"a": ["x"]}
    with pytest.raises(DataError, match="no sheet of that name"):
        read_table(f"{path}!Other")


def test_a_sheet_of_mixed_cells_is_text_and_a_nameless_column_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", S=[["code"], [250], ["E11"], [1.5]])
    assert read_table(path).to_pydict() == {"code": ["250", "E11", "1.5"]}
    with pytest.raises(DataError, match="column 2 has no name"):
        read_table(workbook(tmp_path / "u.xlsx", S=[["a", None], [1, 2]]))
    gaps = [["a", None, "b", None], [1, None, 2, None], [None] * 4, [3, None, 4, None]]
    assert read_table(workbook(tmp_path / "w.xlsx", S=gaps)).to_pydict() == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(DataError, match="no non-empty sheets"):
        read_table(workbook(tmp_path / "n.xlsx", S=[[None, None], ["", ""], [None, None]]))
    with pytest.raises(DataError, match="has no rows"):
        read_table(workbook(tmp_path / "v.xlsx", S=[["a", "b"]]))


@pytest.mark.parametrize("suffix", ["sav", "zsav", "dta", "xpt"])
def test_files_of_statistics_programs(tmp_path, suffix):
    frame = pd.DataFrame(ROWS | {"sex": ["f", "m", ""]})
    path = tmp_path / f"t.{suffix}"
    write = {"sav": "sav", "zsav": "sav", "dta": "dta", "xpt": "xport"}[suffix]
    options = {"compress": True} if suffix == "zsav" else {}
    getattr(pyreadstat, f"write_{write}")(frame, str(path), **options)
    assert {name.lower(): cells for name, cells in read_table(path).to_pydict().items()} == ROWS
    (tmp_path / "packed.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(tmp_path / "packed.gz").equals(read_table(path))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"a corrupt (SAS|SPSS|Stata) file|has no rows"):
        read_table(path)


def test_a_corrupt_sas_table_is_named(tmp_path):
    path = tmp_path / "t.sas7bdat"
    path.write_bytes(bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011") + bytes(4000))
    with pytest.raises(DataError, match="a corrupt SAS file"):
        read_table(path)


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_the_only_file_of_an_archive_is_read_and_others_by_name(tmp_path):
    one = zipped(tmp_path / "one.zip", {"data/a.csv": "a,b\n1,2\n", "__MACOSX/x": "?"})
    assert read_table(one).to_pydict() == {"a": ["1"], "b": ["2"]}
    two = zipped(tmp_path / "two.zip", {"a.csv": "a\n1\n", "b.ndjson": '{"b": 2}\n'})
    assert read_table(f"{two}!b.ndjson").to_pydict() == {"b": [2]}
    with pytest.raises(DataError, match=r"2 files.*two.zip!FILE"):
        read_table(two)
    with pytest.raises(DataError, match="no file of that name"):
        read_table(f"{two}!c.csv")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="only one table"):
        read_table(f"{tmp_path / 't.csv'}!a")


def test_packed_twice_and_a_name_with_a_mark(tmp_path):
    book = workbook(tmp_path / "t.xlsx", S=[["a"], [1]])
    (tmp_path / "t.xlsx.gz").write_bytes(gzip.compress(book.read_bytes()))
    assert read_table(tmp_path / "t.xlsx.gz").to_pydict() == {"a": [1]}
    (tmp_path / "odd!name.csv").write_text("a\n1\n")
    assert read_table(tmp_path / "odd!name.csv").num_rows == 1
    assert read_table(zipped(tmp_path / "t.zip", {"t.csv.gz": gzip.compress(b"a\n1\n")})).num_rows == 1


def test_a_corrupt_member_is_refused(tmp_path):
    path = zipped(tmp_path / "t.zip", {"a.csv": "a,b\n" + "1,2\n" * 9999})
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(DataError, match="corrupt"):
        read_table(path)


MISSING = """
import sys
sys.modules[{module!r}] = None
from reticent.connectors.inputs import read_input
from reticent.errors import ConnectorError
try:
    read_input({data!r})
except ConnectorError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [
        ("python_calamine", "t.xlsx", "excel"),
        ("pyreadstat", "t.sav", "stats"),
        ("fsspec", "s3://b/t.csv", "cloud"),
        ("duckdb", "duckdb:///t.db?table=t", "duckdb"),
        ("adbc_driver_postgresql", "postgresql://h/d?table=t", "postgres"),
    ],
)
def test_a_missing_library_names_its_extra(tmp_path, module, name, extra):
    workbook(tmp_path / "t.xlsx", S=[["a"], [1]])
    (tmp_path / "t.sav").write_bytes(b"$FL2@(#) SPSS")
    code = MISSING.format(module=module, data=name)
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert f"pip install 'reticent[{extra}]'" in said


def test_unknown_addresses_are_no_missing_files():
    with pytest.raises(PolicyError, match=r"ftp:// is not a supported scheme"):
        read_table("ftp://host/t.csv")
    with pytest.raises(PolicyError, match=r"mysql:// is not a supported scheme") as refused:
        read_table("mysql://user:word@host/d?table=t")
    assert "word" not in str(refused.value)
    with pytest.raises(PolicyError, match="unencrypted"):
        read_table("http://example.org/t.csv")


def test_a_header_below_titles_and_merged_cells_is_pointed_at(tmp_path):
    rows = [
        ["Registry 2024", None, None],
        ["confidential", None, None],
        ["Patient", None, "Tumour"],
        ["No", "Born", "Site"],
    ]
    with pytest.raises(DataError, match="column 2 has no name") as refused:
        read_table(workbook(tmp_path / "t.xlsx", S=[*rows, [1, 1950, "C50"], [2, 1961, "C34"]]))
    assert "above line 4, which seems to be the header" in refused.value.hint
    text = tmp_path / "t.csv"
    text.write_text("Registry;;\n\nNo;Born;Site\n1;1950;C50\n2;1961;C34\n")
    with pytest.raises(DataError) as refused:
        read_table(text)
    assert "above line 3, which seems to be the header" in refused.value.hint
