"""A release on disk: wholly or not at all, for its owner only."""

import json
import stat

import pyarrow as pa
import pytest

from reticent.errors import ConnectorError, DataError, PolicyError
from reticent.release import Guarantee, RecordCounts, Release


def made(value="flu"):
    return Release(
        kind="table",
        shape="anatomy",
        method="anatomy",
        tables={
            "qit": pa.table({"group": [0, 0], "age": ["1", None], "note": ['a "quoted", cell', "line\nbreak"]}),
            "st": pa.table({"group": [0, 0], "value": [value, None], "count": [1, 1]}),
        },
        guarantee=Guarantee({"l": {"distinct": 2}}, "a reader", ("something",)),
        records=RecordCounts(2, 2, 0, 0),
        policy_hash="00",
        metrics={"loss": 0.5},
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_it_comes_back_as_it_went(tmp_path, form):
    before = made()
    path = before.to_dir(tmp_path / "deep" / "out", format=form)
    after = Release.from_dir(path)
    assert {name: t.to_pylist() for name, t in after.tables.items()} == {
        name: t.to_pylist() for name, t in before.tables.items()
    }
    assert (after.guarantee, after.records, after.metrics) == (before.guarantee, before.records, before.metrics)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in path.iterdir())
    assert len(list(path.parent.iterdir())) == 1


def test_nothing_is_overwritten(tmp_path):
    path = made().to_dir(tmp_path / "out")
    with pytest.raises(ConnectorError, match="not an empty folder"):
        made().to_dir(path)
    (tmp_path / "empty").mkdir()
    made().to_dir(tmp_path / "empty")


def test_a_changed_file_is_noticed(tmp_path):
    path = made().to_dir(tmp_path / "out")
    (path / "st.csv").write_text((path / "st.csv").read_text().replace("flu", "flo"))
    with pytest.raises(DataError, match=r"st\.csv was changed"):
        Release.from_dir(path)


def test_what_is_no_release_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"release\.json"):
        Release.from_dir(tmp_path)
    (tmp_path / "release.json").write_text("{")
    with pytest.raises(DataError, match="corrupt"):
        Release.from_dir(tmp_path)
    (tmp_path / "release.json").write_text(json.dumps({"format": 7}))
    with pytest.raises(DataError, match="format"):
        Release.from_dir(tmp_path)
    with pytest.raises(PolicyError):
        made().to_dir(tmp_path / "x", format="xlsx")


def test_repr_shows_no_cell():
    assert "CANARY" not in repr(made("CANARY"))
