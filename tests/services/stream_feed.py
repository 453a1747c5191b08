"""A small feed for the tests of Kafka and Spark streams, and what must hold of its publication."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from reticent import Policy, verify

VALUES = ("asthma", "flu", "angina", "gout", "ulcer", "anaemia", "migraine", "sepsis")


def policy(folder: Path, **stream: object) -> Policy:
    (folder / "prior.csv").write_text("value,count\n" + "".join(f"{value},10\n" for value in VALUES))
    return Policy.from_dict(
        {
            "version": 1,
            "person": "person",
            "columns": {
                "person": "identifier",
                "age": "quasi",
                "zip": "quasi",
                "ward": "plain",
                "illness": "sensitive",
            },
            "prior": {"file": "prior.csv"},
            "stream": {"method": "sealed", "l": 4, "persons": 1000, **stream},
        },
        base=folder,
    )


def records(n: int, first: int = 0) -> list[dict]:
    """Records whose ward is a serial number, so that each can be found again in what was published."""
    return [
        {
            "person": f"p{i % 701}",
            "age": 20 + (i * 7) % 60,
            "zip": f"0{(i * 13) % 97:04d}",
            "ward": i,
            "illness": VALUES[((i % 701) * 5 + i // 701) % len(VALUES)],
        }
        for i in range(first, first + n)
    ]


def check(lines: list[dict], given: list[dict], wanted: Policy, folder: Path, shard: int) -> None:
    """Every record once, in one group that offers its value, and the judge agrees."""
    tuples = [line for line in lines if line["type"] == "tuple"]
    assert Counter(line["plain"]["ward"] for line in tuples) == Counter(record["ward"] for record in given)
    values = {record["ward"]: record["illness"] for record in given}
    groups = {line["group"]: {value for value, _ in line["candidates"]} for line in lines if line["type"] == "group"}
    assert all(values[line["plain"]["ward"]] in groups[line["group"]] for line in tuples)
    path = folder / f"shard{shard}.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = verify(path, wanted)
    assert verdict.holds, verdict.refuted
