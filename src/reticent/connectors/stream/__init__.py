"""Sources and sinks of a stream: files, pipes and ports to read, files and pipes to write; and the stream."""

from reticent.connectors.stream.sink import FileSink, dead_letters_to, open_sink
from reticent.connectors.stream.source import FileSource
from reticent.connectors.stream.stream import FORMATS, Stream, check_ends, open_source

__all__ = ["FORMATS", "FileSink", "FileSource", "Stream", "check_ends", "dead_letters_to", "open_sink", "open_source"]
