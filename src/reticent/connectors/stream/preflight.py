"""Before a stream is begun: everything that would refuse it is asked first, so that a refusal leaves nothing behind."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from reticent.connectors.hl7 import check_port
from reticent.connectors.stream.sink import taken
from reticent.connectors.stream.source import FileSource
from reticent.connectors.stream.stream import FORMATS
from reticent.policy import Policy
from reticent.publication.blocks import Blocks
from reticent.publication.stream import StreamPublication


def check_ends(policy: Policy, source: str, target: str, file_format: str | None = None) -> None:
    """Builds the engine, opens the source and looks at its beginning, and makes nothing; refuses what the stream itself would."""
    if target != "-" and (path := Path(target)).is_file() and path.stat().st_size:
        raise taken(path)
    reader = StreamPublication(policy).reader
    if source.startswith("mllp://"):
        FORMATS["hl7"](reader)
        check_port(source)
    elif source != "-" and not Path(source).is_fifo():  # who opens and closes a pipe takes its writer down
        with closing(FileSource(source)) as file:
            if file.regular:
                head = file.read() or b""
                blocks = Blocks(FORMATS[file_format or file.guess(head)](reader), reader)
                if head:
                    next(blocks.cut(head.partition(b"\n")[0] + b"\n"), None)
