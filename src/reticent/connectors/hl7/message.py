"""One HL7 v2 message in its vertical-bar form: segments, fields, components, escapes."""

from __future__ import annotations

import re

# Fields that hold times, by segment and number: rewritten as ISO dates so that hierarchies can read them.
TIMES = frozenset(("MSH-7", "EVN-2", "PID-7", "PID-29", "PV1-44", "PV1-45", "DG1-5"))
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
    def control(self) -> str:
        """The sender's number of the message."""
        return self._field("MSH", 10)

    def has(self, segment: str) -> bool:
        """Whether a segment is there."""
        return segment in self._segments

    def times(self, segment: str) -> int:
        """How often a segment stands in the message."""
        return len(self._segments.get(segment, ()))

    def get(self, place: str, repetition: int = 0) -> str | None:
        """A field or a component; None where it is empty."""
        segment, _, rest = place.partition("-")
        number, _, part = rest.partition(".")
        value = self._field(segment, int(number), repetition).split(self._tilde)[0]
        pieces = value.split(self._caret)
        at = int(part or 1) - 1
        if place in TIMES:
            return _iso(pieces[0])
        text = value if not part and len(pieces) == 1 else pieces[at] if at < len(pieces) else ""
        return self._plain(text) if text and text != '""' else None

    def _field(self, segment: str, number: int, repetition: int = 0) -> str:
        segments = self._segments.get(segment, [])
        fields = segments[repetition] if repetition < len(segments) else []
        at = number - 1 if segment == "MSH" else number  # MSH-1 is the bar itself
        return fields[at] if at < len(fields) else ""

    def _plain(self, text: str) -> str:
        signs = {"F": self._bar, "S": self._caret, "T": "&", "R": self._tilde, "E": "\\"}
        return _ESCAPE.sub(lambda match: signs[match[1]], text)


def _iso(text: str) -> str | None:
    time = _TIME.match(text)
    if time is None:
        return text or None
    day = f"{time[1]}-{time[2]}-{time[3]}"
    return f"{day}T{time[4]}:{time[5]}:{time[6] or '00'}" if time[4] else day
