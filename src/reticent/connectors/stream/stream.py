"""`reticent.Stream`: a stream whose source and sink can be given by name, as on the command line."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from reticent.connectors.hl7 import Hl7Lines, MllpSource, check_port
from reticent.connectors.stream.sink import foreign_file_error, open_sink
from reticent.connectors.stream.source import FileSource
from reticent.policy import Policy
from reticent.publication import blocks, stream
from reticent.publication.blocks import Blocks
from reticent.publication.ports import Progress, Sink, Source
from reticent.publication.stream import StreamPublication

FORMATS: blocks.Formats = {**blocks.FORMATS, "hl7": Hl7Lines}


def open_source(name: str, *, wake: int | None = None) -> FileSource | MllpSource:
    """Open a source by name: a path, "-" for standard input, or mllp://host:port; a byte on `wake` ends its waiting."""
    return MllpSource(name, wake=wake) if name.startswith("mllp://") else FileSource(name, wake=wake)


class Stream(stream.Stream):
    """A stream with a store: `run` from a source to a sink, or `push` batches and get the lines.

    After it was closed or killed, it continues where it stopped.

    Example:
        >>> with Stream("policy.yaml", store="private.db") as feed:  # doctest: +SKIP
        ...     feed.run("feed.csv", "released.ndjson")
    """

    formats = FORMATS

    def run(
        self,
        source: str | Source,
        sink: str | Sink = "-",
        *,
        format: str | None = None,  # noqa: A002 - the word of the command line
        replayed: bool = False,
        final: bool = False,
        progress: Progress | None = None,
    ) -> stream.Summary:
        """Read the source to its end, or until `stop`; source and sink are names or open objects."""
        with ExitStack() as stack:
            end = stack.enter_context(closing(open_sink(sink))) if isinstance(sink, str) else sink
            start = stack.enter_context(closing(open_source(source))) if isinstance(source, str) else source
            return super().run(start, end, format=format, replayed=replayed, final=final, progress=progress)


def check_ends(policy: Policy, source: str, target: str, file_format: str | None = None) -> None:
    """Check a stream before it starts: build the engine and read the start of the source, without writing anything."""
    if target != "-" and (path := Path(target)).is_file() and path.stat().st_size:
        raise foreign_file_error(path)
    reader = StreamPublication(policy).reader
    if source.startswith("mllp://"):
        FORMATS["hl7"](reader)
        check_port(source)
    elif source != "-" and not Path(source).is_fifo():  # opening and closing a pipe would end its writer
        with closing(FileSource(source)) as file:
            if file.regular:
                head = file.read() or b""
                blocks = Blocks(FORMATS[file_format or file.guess(head)](reader), reader)
                if head:
                    next(blocks.iter_batches(head.partition(b"\n")[0] + b"\n"), None)
