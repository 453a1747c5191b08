"""Releases as zip files on disk: packed once, one at a time, and read from there by whoever downloads them.

A release never changes, so neither does its file. However many readers there are, and however slowly they read, memory holds
a piece for each of them and not the release.
"""

from __future__ import annotations

import os
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from reticent.disk import make_folder, move
from reticent.release import Release

_MAX_FILES = 8


class ZipCache:
    """The last few files, in a private folder that goes when the server does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._in_use: set[Path] = set()

    def open(self, name: str, file_format: str, load: Callable[[], Release]) -> BinaryIO:
        """The zip file of a release, opened; made when it is not there."""
        with self._lock:
            file = self._folder / f"{name}.{file_format}.zip"
            fresh = not file.exists()
            if fresh:
                make_folder(self._folder, exist_ok=True)
                self._pack(load(), file, file_format)
            os.utime(file, ns=(now := time.time_ns(), now))  # the file system's own clock stands still for milliseconds
            if fresh:
                self._evict()
            return file.open("rb")

    def drop(self, name: str) -> None:
        """Removes the files of a release."""
        with self._lock:
            for file in self._folder.glob(f"{name}.*.zip"):
                self._remove(file)

    def _pack(self, release: Release, file: Path, file_format: str) -> None:
        with TemporaryDirectory(dir=self._folder) as folder:
            where = release.to_dir(Path(folder) / "release", format=file_format)
            unfinished = Path(folder) / "zip"
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
                for part in sorted(where.iterdir()):
                    archive.write(part, part.name)
            move(unfinished, file)

    def _evict(self) -> None:
        files = sorted(self._folder.glob("*.zip"), key=lambda file: file.stat().st_mtime_ns)
        for file in {*files[:-_MAX_FILES], *self._in_use}:
            self._remove(file)

    def _remove(self, file: Path) -> None:
        """Whoever is reading it goes on reading it; on Windows it goes after them, with the next one that is made."""
        self._in_use.discard(file)
        try:
            file.unlink(missing_ok=True)
        except PermissionError:
            self._in_use.add(file)
