"""HL7 v2: messages, their framing and what is set aside."""

import pytest

from reticent.connectors.hl7 import Hl7Lines, Message
from reticent.connectors.hl7.lines import split_messages
from reticent.datasets import feed
from reticent.datasets.adt import message, write_adt
from reticent.datasets.policies import policy_yaml
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.publication.records import RecordReader

TEXT = (
    "MSH|^~\\&|A|B|||20250301||ADT^A01|77|P|2.5\rPID|1||12^^^H~13^^^X||Doe^Jo||196001310830|F|||S^^T^^0123\r"
    "PV1|1|I\rDG1|1||J45^a \\T\\ b\rDG1|2||C50\r"
)


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "policy.yaml").write_text(policy_yaml("adt"))
    return Policy.load(tmp_path / "policy.yaml")


def test_fields():
    said = Message(TEXT)
    assert [said.get(place) for place in ("PID-3.1", "PID-7", "PID-11.5", "PID-5.2", "DG1-3.2")] == [
        "12",
        "1960-01-31T08:30:00",
        "0123",
        "Jo",
        "a & b",
    ]
    assert (said.get("PV1-44"), said.get("ZZZ-1"), said.event, said.control_id) == (None, None, "A01", "77")


def test_generated_messages_come_back(policy):
    rows = feed.generate(50, 3).to_pylist()
    data = "".join(message(row, i) for i, row in enumerate(rows)).encode()
    batch, _ = Hl7Lines(RecordReader(policy)).read(data, last=True)
    assert batch.total == 50
    assert batch.table.column("patient_id").to_pylist() == [row["patient_id"] for row in rows]
    assert batch.table.column("diagnosis").to_pylist() == [row["diagnosis"] for row in rows]
    assert batch.table.column("admitted").to_pylist() == [row["admitted"].isoformat() for row in rows]


def test_second_diagnoses_come_back(policy, tmp_path):
    write_adt(tmp_path, 30, 3, further=True)
    batch, _ = Hl7Lines(RecordReader(policy)).read((tmp_path / "adt.hl7").read_bytes(), last=True)
    rows = feed.generate(30, 3).to_pylist()
    second = sum(rows[i]["diagnosis"] != rows[(i + 1) % 30]["diagnosis"] for i in range(2, 30, 3))
    assert batch.total == 30 + second > 35
    data = (tmp_path / "adt.hl7").read_bytes()
    assert b"\rNK1|" in data  # families and deaths are there, and no records
    assert b"ADT^A03" in data


def test_cut_anywhere_gives_the_same_messages(policy):
    data = (TEXT * 5).encode()
    for cut in range(0, len(data), 7):
        lines, whole, carry = Hl7Lines(RecordReader(policy)), [], b""
        for block, last in ((data[:cut], False), (data[cut:], True)):
            carry += block
            _, end = lines.read(carry, last=last)
            whole += split_messages(carry[:end])
            carry = carry[end:]
        assert whole == split_messages(data)


def test_other_events_pass_and_bad_messages_are_set_aside(policy):
    other = TEXT.replace("ADT^A01", "ADT^A08")
    data = b"rubbish\r" + other.encode() + TEXT.encode() + b"MSH|^~\\&|||||||ADT^A01|1\r" + b"MSH|^~\\&|\xff\r"
    batch, _ = Hl7Lines(RecordReader(policy)).read(data, last=True)
    assert batch.table["diagnosis"].to_pylist() == ["J45", "C50"]
    assert [why for _, why, _ in batch.rejected] == ["not an HL7 message", "no PID segment", "not UTF-8"]
    assert batch.rows.tolist() == [1, 2]


def test_every_diagnosis_is_a_record_once(policy):
    again = TEXT + "DG1|3||C50\rDG1|4\r"
    batch, _ = Hl7Lines(RecordReader(policy)).read(again.encode(), last=True)
    assert batch.table["diagnosis"].to_pylist() == ["J45", "C50"]
    bare = TEXT.partition("DG1")[0]
    batch, _ = Hl7Lines(RecordReader(policy)).read(bare.encode(), last=True)
    assert batch.table["diagnosis"].to_pylist() == [None]


def test_a_policy_without_the_section_is_refused():
    with pytest.raises(PolicyError, match="hl7: adt"):
        Hl7Lines(RecordReader(Policy.from_dict({"version": 1, "columns": {"a": "quasi"}})))
    with pytest.raises(PolicyError, match="PID-8"):
        Policy.from_dict({"version": 1, "columns": {"a": "quasi"}, "hl7": {"columns": {"a": "sex"}}})
