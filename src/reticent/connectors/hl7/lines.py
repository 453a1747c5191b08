"""Parse HL7 v2 messages with vertical bars into batches of text columns; bad messages are rejected with a reason."""

from __future__ import annotations

import re
from itertools import compress

import numpy as np
import pyarrow as pa

from reticent.errors import PolicyError
from reticent.publication.records import Batch, RecordReader, RejectedRecord

# Fields with times, by segment and number: rewritten as ISO dates so that hierarchies can parse them.
TIME_FIELDS = frozenset(("MSH-7", "EVN-2", "PID-7", "PID-29", "PV1-44", "PV1-45", "DG1-5"))
_TIME = re.compile(r"^(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")
_ESCAPE = re.compile(r"\\([FSTRE])\\")


class Message:
    r"""Fields of a message by name: `PID-8`, `DG1-3.1`; the given repetition of a segment, the first one of a field.

    >>> text = "MSH|^~\\&|||||||ADT^A01|7|P|2.5\rPID|1||12^^^X||Doe^Jo||19600131|F"
    >>> Message(text).get("PID-3.1"), Message(text).get("PID-7"), Message(text).event
    ('12', '1960-01-31', 'A01')
    """

    def __init__(self, text: str) -> None:
        if len(text) < 8 or not text.startswith("MSH"):
            raise ValueError("a message begins with MSH")
        self._bar, self._caret, self._tilde = text[3], text[4], text[5]
        self._segments: dict[str, list[list[str]]] = {}
        for line in re.split(r"[\r\n]+", text):
            fields = line.split(self._bar)
            self._segments.setdefault(fields[0], []).append(fields)

    @property
    def event(self) -> str:
        """The trigger event of an ADT message, such as A01; empty for others."""
        kind = self._field("MSH", 9).split(self._caret)
        return kind[1] if len(kind) > 1 and kind[0] == "ADT" else ""

    @property
    def control_id(self) -> str:
        """The sender's message number."""
        return self._field("MSH", 10)

    def count_segments(self, segment: str) -> int:
        """Return how often a segment occurs in the message."""
        return len(self._segments.get(segment, ()))

    def get(self, place: str, repetition: int = 0) -> str | None:
        """Return a field or a component; None if it is empty."""
        segment, _, rest = place.partition("-")
        number, _, part = rest.partition(".")
        value = self._field(segment, int(number), repetition).split(self._tilde)[0]
        pieces = value.split(self._caret)
        at = int(part or 1) - 1
        if place in TIME_FIELDS:
            return _iso(pieces[0])
        text = value if not part and len(pieces) == 1 else pieces[at] if at < len(pieces) else ""
        return self._unescape(text) if text and text != '""' else None

    def _field(self, segment: str, number: int, repetition: int = 0) -> str:
        segments = self._segments.get(segment, [])
        fields = segments[repetition] if repetition < len(segments) else []
        at = number - 1 if segment == "MSH" else number  # MSH-1 is the bar itself
        return fields[at] if at < len(fields) else ""

    def _unescape(self, text: str) -> str:
        characters = {"F": self._bar, "S": self._caret, "T": "&", "R": self._tilde, "E": "\\"}
        return _ESCAPE.sub(lambda match: characters[match[1]], text)


def _iso(text: str) -> str | None:
    time = _TIME.match(text)
    if time is None:
        return text or None
    day = f"{time[1]}-{time[2]}-{time[3]}"
    return f"{day}T{time[4]}:{time[5]}:{time[6] or '00'}" if time[4] else day


START, END = b"\x0b", b"\x1c\r"
"""The frame of a message on an MLLP connection."""

_DIAGNOSIS_SEGMENT = "DG1"
"""The segment that occurs once per diagnosis."""
_BEGIN = re.compile(rb"(?:^|[\r\n\x0b])(?=MSH)")


class Hl7Lines:
    """Splits blocks of bytes into complete HL7 v2 messages, framed by MLLP or one after another in a file."""

    needs_header = False
    by_line = False

    def __init__(self, reader: RecordReader) -> None:
        self._reader, policy = reader, reader.policy
        if policy.hl7 is None:
            raise PolicyError("The policy has no hl7 section.", hint="Add hl7: adt to the policy.")
        self._paths = policy.hl7.paths
        self._events = frozenset(policy.hl7.events)
        policy.check_columns(tuple(self._paths))

    def begin(self, line: bytes) -> None:
        """Do nothing: HL7 has no header."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """Return the records of the complete messages, and the number of bytes they use."""
        size = len(data) if last else _complete_end(data)
        return self._parse(data[:size]), size

    def _parse(self, data: bytes) -> Batch:
        """Return the records of the messages; other trigger events give none."""
        columns: dict[str, list[str | None]] = {name: [] for name in self._paths}
        rows, bad, total = [], [], 0
        for raw in split_messages(data):
            records = self._records(raw)
            if isinstance(records, str):
                bad.append(RejectedRecord(total, records, raw))
                total += 1
                continue
            for record in records:
                rows.append(total)
                for name, cell in zip(columns, record, strict=True):
                    columns[name].append(cell)
                total += 1
        table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
        return self._reader.text(table, np.array(rows, dtype=np.int64), total, bad)

    def _records(self, raw: bytes) -> list[tuple[str | None, ...]] | str:
        """Return one record per distinct diagnosis, none for other trigger events, or the reason for a rejection."""
        try:
            message = Message(raw.decode())
        except UnicodeDecodeError:
            return "not UTF-8"
        except ValueError:
            return "not an HL7 message"
        if message.event not in self._events:
            return []
        if not message.count_segments("PID"):
            return "no PID segment"
        repeated = [place.startswith(_DIAGNOSIS_SEGMENT) for place in self._paths.values()]
        records = [
            self._record(message, number) for number in range(max(1, message.count_segments(_DIAGNOSIS_SEGMENT)))
        ]
        full = [record for record in records if any(compress(record, repeated))]
        return list(dict.fromkeys(full or records[:1]))

    def _record(self, message: Message, number: int) -> tuple[str | None, ...]:
        """Return the fields of a message with the diagnosis of this number."""
        return tuple(
            message.get(place, number if place.startswith(_DIAGNOSIS_SEGMENT) else 0) for place in self._paths.values()
        )


def _complete_end(data: bytes) -> int:
    """Return the end of the last complete message: after its frame, or at the start of the next message."""
    frame_end = data.rfind(END)
    if frame_end >= 0:
        return frame_end + len(END)
    starts = [start.end() for start in _BEGIN.finditer(data)]
    return starts[-1] if len(starts) > 1 else 0


def split_messages(data: bytes) -> list[bytes]:
    """Split bytes into messages; bytes before the first message count as one, which is rejected later."""
    pieces = _BEGIN.split(data.replace(b"\x1c\r", b"\r").replace(b"\x1c", b"\r"))
    return [part for part in (piece.strip(b"\r\n\x0b \t") for piece in pieces) if part]
