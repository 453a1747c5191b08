"""The steps of the demo, one function each."""

from __future__ import annotations

import time
from pathlib import Path

from reticent.cli.output import describe, say
from reticent.policy import Policy


def tour(folder: Path, rows: int) -> None:
    """All steps, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    data = _hospital(folder, rows)
    _table(folder, data)
    say(f"\nAll files are in {folder}. Next: look at them, then `reticent init YOUR.csv`.")


def _title(text: str) -> None:
    say(f"\n{text}\n{'-' * len(text)}")


def _hospital(folder: Path, rows: int) -> Path:
    from reticent.datasets.files import write_hospital
    from reticent.policy.check import check

    _title("1. A hospital that does not exist")
    data = folder / "hospital.csv"
    write_hospital(data, rows, seed=1)
    say(f"{rows:,} admissions in {data}, and a policy beside it that says what must hold:")
    for note in check(Policy.load(data.with_suffix(".policy.yaml"))):
        say(f"  - {note}")
    return data


def _table(folder: Path, data: Path) -> None:
    from reticent.audit import verify
    from reticent.connectors.files import read_table
    from reticent.release import Release
    from reticent.tables import anonymize

    _title("2. One table, released once (Anatomy)")
    policy = Policy.load(data.with_suffix(".policy.yaml"))
    policy = Policy.from_dict(policy.to_dict() | {"privacy": {"l": 5}}, base=policy.base)
    start = time.perf_counter()
    release = anonymize(read_table(str(data)), policy, method="anatomy")
    release.to_dir(folder / "anatomy")
    describe(release, time.perf_counter() - start)
    verdict = verify([Release.from_dir(folder / "anatomy")], policy)
    say(
        f"  The judge read {folder / 'anatomy'} and finds that the guarantee {'holds' if verdict.holds else 'DOES NOT HOLD'}."
    )
