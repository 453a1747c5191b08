"""A driver that dies while it releases a table leaves a whole release or none that anybody could take for one."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import counted_cases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_table_driver

from reticent import anonymize, verify
from reticent.errors import ReticentError, StateError

SERVICES = Path(spark_table_driver.__file__).parent
LIMIT = 300.0
KILLS = int(os.environ.get("RETICENT_KILLS", "1"))
MOMENTS = {
    "begun": "begun",
    "verified": "verified",
    "writing": "out/_temporary/**/*.parquet",
    "naming": "out/*.parquet",
    "named": "out/_SUCCESS",
}
"""What there is to see, newer than the driver, when it is to die."""


def come(folder: Path, moment: str, began: float) -> bool:
    """Whether a driver has come so far; files come and go while they are looked at."""
    with contextlib.suppress(FileNotFoundError):
        return any(path.stat().st_mtime > began for path in folder.glob(MOMENTS[moment]))
    return False


def kill(folder: Path, moment: str, later: float) -> None:
    """Starts a driver, and ends it with its Java and its Python workers as soon as it has come so far."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(SERVICES)])}
    with (folder / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, str(SERVICES / "spark_table_driver.py"), str(folder)],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    began, end = time.time(), time.monotonic() + LIMIT
    while not come(folder, moment, began) and driver.poll() is None:
        assert time.monotonic() < end, (folder / "driver.log").read_text()[-3000:]
        time.sleep(0.002)
    time.sleep(later)
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)  # the process group that this test has made
    assert driver.wait() in {0, -signal.SIGKILL}, (folder / "driver.log").read_text()[-3000:]


def shown(folder: Path) -> list[tuple]:
    """The rows that a reader of the folder finds, each as often as it stands there."""
    return [row for part in (folder / "out").glob("*.parquet") for row in as_text(pq.read_table(part))]


def as_text(rows: pa.Table) -> list[tuple]:
    names = sorted(rows.column_names)
    return list(zip(*[rows.column(name).cast(pa.string()).to_pylist() for name in names], strict=True))


def state(folder: Path) -> str:
    """What a driver has left: whole is what says so, half what has rows and does not."""
    if (folder / "out" / "_SUCCESS").exists():
        return "whole"
    return "half" if shown(folder) else "nothing"


def test_a_driver_dies_while_it_releases_a_table(spark, tmp_path):
    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice, rows, left = random.Random(seed), counted_cases.rows(3000), []
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "rows.parquet")
    wanted = spark_table_driver.policy()
    local = anonymize(rows, wanted, seed=1)
    expected = Counter(as_text(local.tables["data"]))
    for at in range(KILLS):
        kill(tmp_path, "naming" if at == 0 else dice.choice(sorted(MOMENTS)), dice.random() / 20)
        left.append(state(tmp_path))
        if left[-1] == "whole":
            break
        with pytest.raises(ReticentError):
            verify(tmp_path / "out", wanted)
    if left[-1] != "whole":
        spark_table_driver.run(spark, tmp_path)
    print(f"drivers left {', '.join(left)}")  # noqa: T201 - for make stress
    assert Counter(shown(tmp_path)) == expected
    assert not (tmp_path / "out" / "_temporary").exists()
    with pytest.raises(StateError, match="already contains a release"):
        spark_table_driver.run(spark, tmp_path)
    assert Counter(shown(tmp_path)) == expected
