"""A cache of releases as zip files on disk: each is packed once and then read by all downloads.

A release never changes, so its file does not either. Each download needs memory for one piece, not for the release.
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
    """The last few files, in a private folder that is deleted when the server stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._in_use: set[Path] = set()

    def open(self, name: str, file_format: str, load: Callable[[], Release]) -> BinaryIO:
        """Open the zip file of a release; create it if it does not exist."""
        with self._lock:
            file = self._folder / f"{name}.{file_format}.zip"
            is_new = not file.exists()
            if is_new:
                make_folder(self._folder, exist_ok=True)
                self._pack(load(), file, file_format)
            os.utime(file, ns=(now := time.time_ns(), now))  # the clock of the file system is too coarse
            if is_new:
                self._evict()
            return file.open("rb")

    def drop(self, name: str) -> None:
        """Remove the files of a release."""
        with self._lock:
            for file in self._folder.glob(f"{name}.*.zip"):
                self._remove(file)

    def _pack(self, release: Release, file: Path, file_format: str) -> None:
        with TemporaryDirectory(dir=self._folder) as folder:
            parts = release.to_dir(Path(folder) / "release", format=file_format)
            unfinished = Path(folder) / "zip"
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
                for part in sorted(parts.iterdir()):
                    archive.write(part, part.name)
            move(unfinished, file)

    def _evict(self) -> None:
        files = sorted(self._folder.glob("*.zip"), key=lambda file: file.stat().st_mtime_ns)
        for file in {*files[:-_MAX_FILES], *self._in_use}:
            self._remove(file)

    def _remove(self, file: Path) -> None:
        """Remove a file; on Windows a file in use is removed later, when the next file is created."""
        self._in_use.discard(file)
        try:
            file.unlink(missing_ok=True)
        except PermissionError:
            self._in_use.add(file)
