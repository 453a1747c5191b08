"""The feed of admissions as HL7 v2 ADT^A01 messages, with a prior and a policy for the stream."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from reticent.datasets import courses, feed
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import RowCallback, private_file, write, write_text

_MESSAGE = (
    "MSH|^~\\&|HIS|HOSPITAL|||{time}||ADT^A01^ADT_A01|{number}|P|2.5\r"
    "EVN|A01|{time}\r"
    "PID|1||{person}^^^HOSPITAL^MR||Family^Given||{born}|{sex}|||Street 1^^Town^^{postcode}\r"
    "PV1|1|{kind}|WARD^1^2{empty}|{time}\r"
    "DG1|1||{diagnosis}^^I10|Free text about the person\r"
)
_KIN = "NK1|1|Family^Kin|SPO|Street 1^^Town\r"
_DEATH = (
    "MSH|^~\\&|HIS|HOSPITAL|||{time}||ADT^A03^ADT_A03|{number}|P|2.5\r"
    "EVN|A03|{time}\r"
    "PID|1||{person}^^^HOSPITAL^MR||Family^Given{empty}|{died}|Y\r"
    "PV1|1|I|WARD^1^2\r"
)
_SEX = {"female": "F", "male": "M"}
_CLASS = {"emergency": "E", "outpatient clinic": "O"}


def write_adt(
    folder: Path,
    n: int,
    seed: int = 0,
    *,
    outbreak: str | None = None,
    further: bool = False,
    on_rows: RowCallback = None,
) -> tuple[Path, ...]:
    """Write adt.hl7, prior.csv, kernel.csv and policy.yaml into a folder; return the paths.

    With `further`, every third message has a second diagnosis, and persons who live with family have next of kin. Some
    persons die: an A03 message reports it, which is a record only if a policy names the event.
    """
    paths = tuple(folder / name for name in ("adt.hl7", "prior.csv", "kernel.csv", "policy.yaml"))
    with private_file(paths[0]) as file:
        number = 0
        last: dict[str, dt.datetime] = {}
        for table in feed.batches(n, seed, outbreak=outbreak):
            rows = table.to_pylist()
            for row, other in zip(rows, [*rows[1:], *rows[:1]], strict=True):
                number += 1
                file.write(message(row, number).encode())
                if not further:
                    continue
                if number % 3 == 0:
                    file.write(f"DG1|2||{other['diagnosis']}^^I10\r".encode())
                course = courses.person(row["patient_id"], seed)
                file.write(_KIN.encode() if course.family else b"")
                if course.died is not None:
                    last[row["patient_id"]] = row["admitted"]
            if on_rows:
                on_rows(table.num_rows)
        for place, (person, time) in enumerate(last.items(), number + 1):
            file.write(_death(person, time + dt.timedelta(1), place).encode())
    past = feed.prior_by_sex(seed)
    codes = [_SEX[sex] for sex in past.column("sex").to_pylist()]
    write([past.set_column(0, "sex", [codes])], paths[1])
    write([feed.kernel()], paths[2])
    write_text(policy_yaml("adt"), paths[3])
    return paths


def _death(person: str, time: dt.datetime, number: int) -> str:
    """Return the message for a stay that ended by death."""
    return _DEATH.format(
        time=f"{time:%Y%m%d%H%M%S}", number=number, person=person, died=f"{time:%Y%m%d}", empty="|" * 23
    )


def message(row: dict[str, Any], number: int) -> str:
    """Return one admission as a message."""
    time = row["admitted"]
    return _MESSAGE.format(
        time=f"{time:%Y%m%d%H%M%S}",
        number=number,
        person=row["patient_id"],
        born=f"{time.year - row['age']}0101",
        sex=_SEX[row["sex"]],
        postcode=row["postcode"],
        kind=_CLASS.get(row["admission_route"], "I"),
        empty="|" * 40,
        diagnosis=row["diagnosis"],
    )
