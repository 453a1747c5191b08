"""A small feed for the tests of Kafka and Spark streams, and what must hold of its publication."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from reticent import Policy, verify

VALUES = ("asthma", "flu", "angina", "gout", "ulcer", "anaemia", "migraine", "sepsis")


def policy(folder: Path, method: str = "veil") -> Policy:
    (folder / "prior.csv").write_text("value,count\n" + "".join(f"{value},10\n" for value in VALUES))
    steps = "".join(f"{a},{b},{0.5 if a == b else 0.5 / 7}\n" for a in VALUES for b in VALUES)
    (folder / "kernel.csv").write_text(steps)
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
            "privacy": {"l": 4},
            "prior": {"file": "prior.csv", "kernel": {"file": "kernel.csv"}},
            "stream": {"method": method},
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
    """Every record once, among candidates that hold its value, each person's events in order; and the verifier agrees."""
    assert lines[0]["type"] == "codebook", "the codebook stands before the first line"
    records = [line for line in lines if line["type"] == "record"]
    assert Counter(line["plain"]["ward"] for line in records) == Counter(record["ward"] for record in given)
    values = {record["ward"]: record for record in given}
    events: dict[str, list[int]] = {}
    for line in records:
        record = values[line["plain"]["ward"]]
        assert record["illness"] in line["candidates"]
        events.setdefault(record["person"], []).append(line["event"])
    assert all(numbers == list(range(len(numbers))) for numbers in events.values())
    path = folder / f"shard{shard}.ndjson"
    path.write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))
    result = verify(path, wanted)
    assert result.holds, result.refuted
