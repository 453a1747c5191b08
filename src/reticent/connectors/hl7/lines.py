"""HL7 v2 messages in their vertical-bar form, and as batches of text columns, the bad ones set aside with a reason; the counterpart of CSV and NDJSON lines."""

from __future__ import annotations

import re
from itertools import compress

import numpy as np
import pyarrow as pa

from reticent.errors import PolicyError
from reticent.publication.records import Batch, RecordReader, RejectedRecord

# Fields that hold times, by segment and number: rewritten as ISO dates so that hierarchies can read them.
TIME_FIELDS = frozenset(("MSH-7", "EVN-2", "PID-7", "PID-29", "PV1-44", "PV1-45", "DG1-5"))
_TIME = re.compile(r"^(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")
_ESCAPE = re.compile(r"\\([FSTRE])\\")


class Message:
    r"""Fields of a message by name: `PID-8`, `DG1-3.1`; of a segment that repeats the one asked for, of a field its first repetition.

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
        """The sender's number of the message."""
        return self._field("MSH", 10)

    def count_segments(self, segment: str) -> int:
        """How often a segment stands in the message."""
        return len(self._segments.get(segment, ()))

    def get(self, place: str, repetition: int = 0) -> str | None:
        """A field or a component; None where it is empty."""
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
        signs = {"F": self._bar, "S": self._caret, "T": "&", "R": self._tilde, "E": "\\"}
        return _ESCAPE.sub(lambda match: signs[match[1]], text)


def _iso(text: str) -> str | None:
    time = _TIME.match(text)
    if time is None:
        return text or None
    day = f"{time[1]}-{time[2]}-{time[3]}"
    return f"{day}T{time[4]}:{time[5]}:{time[6] or '00'}" if time[4] else day


START, END = b"\x0b", b"\x1c\r"
"""The frame of a message on an MLLP connection."""

_DIAGNOSIS_SEGMENT = "DG1"
"""The segment that stands in a message once for every diagnosis."""
_BEGIN = re.compile(rb"(?:^|[\r\n\x0b])(?=MSH)")


class Hl7Lines:
    """HL7 v2: complete messages out of blocks of bytes, framed as MLLP or one after another in a file."""

    needs_header = False
    by_line = False

    def __init__(self, reader: RecordReader) -> None:
        self._reader, policy = reader, reader.policy
        if policy.hl7 is None:
            raise PolicyError("The policy does not say how messages become records.", hint="Write hl7: adt.")
        self._paths = policy.hl7.paths
        self._events = frozenset(policy.hl7.events)
        policy.check_columns(tuple(self._paths))

    def begin(self, line: bytes) -> None:
        """There is no header."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """The records of the complete messages, and how many bytes they take."""
        size = len(data) if last else _complete_end(data)
        return self._parse(data[:size]), size

    def _parse(self, data: bytes) -> Batch:
        """Other events are no records."""
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
        """A record for each diagnosis that differs in what is read of it; none for other events, or why it is no message."""
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
        """What is read of a message and the diagnosis of this number."""
        return tuple(
            message.get(place, number if place.startswith(_DIAGNOSIS_SEGMENT) else 0) for place in self._paths.values()
        )


def _complete_end(data: bytes) -> int:
    """Where the last complete message ends: after its frame, or where the next begins."""
    framed = data.rfind(END)
    if framed >= 0:
        return framed + len(END)
    starts = [start.end() for start in _BEGIN.finditer(data)]
    return starts[-1] if len(starts) > 1 else 0


def split_messages(data: bytes) -> list[bytes]:
    """The single messages of some bytes; what stands before the first is one of its own, to be set aside."""
    pieces = _BEGIN.split(data.replace(b"\x1c\r", b"\r").replace(b"\x1c", b"\r"))
    return [part for part in (piece.strip(b"\r\n\x0b \t") for piece in pieces) if part]
