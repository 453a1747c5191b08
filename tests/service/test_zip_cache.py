"""Downloads come from one file on disk, packed once; only the last few stay."""

from __future__ import annotations

import io
import zipfile

from reticent.service import zip_cache
from reticent.service.zip_cache import ZipCache


class Release:
    packed = 0

    def to_dir(self, folder, **_):
        Release.packed += 1
        folder.mkdir()
        (folder / "data.csv").write_text("a\n1\n")
        return folder


def test_one_file_for_all_recipients_and_only_a_few_files(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_cache, "_MAX_FILES", 2)
    packer = ZipCache(tmp_path / "packed")
    with packer.open("a", "csv", Release) as first, packer.open("a", "csv", Release) as second:
        for name in ("b", "c"):
            packer.open(name, "csv", Release).close()
        data = first.read()  # of a file that has gone meanwhile, or goes with the next one
        assert data == second.read()
    packer.open("d", "csv", Release).close()
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["data.csv"]
    assert Release.packed == 4
    left = sorted((file.stat().st_mtime_ns, file.name) for file in (tmp_path / "packed").iterdir())
    assert [name for _, name in left] == ["c.csv.zip", "d.csv.zip"], (left, packer._in_use)


def test_a_file_that_cannot_go_yet_goes_later(tmp_path, monkeypatch):
    """On Windows a file stays as long as somebody reads it."""
    packer = ZipCache(tmp_path / "packed")
    packer.open("a", "csv", Release).close()
    with monkeypatch.context() as windows:

        def unlink(self, **_):
            raise PermissionError(13, "sharing violation")

        windows.setattr(zip_cache.Path, "unlink", unlink)
        packer.drop("a")
    packer.open("b", "csv", Release).close()
    assert [file.name for file in (tmp_path / "packed").iterdir()] == ["b.csv.zip"]
