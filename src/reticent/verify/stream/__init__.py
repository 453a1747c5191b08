"""Streams: the judge of their lines, beside their input, and of a stream that runs."""
