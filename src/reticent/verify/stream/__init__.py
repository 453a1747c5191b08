"""Streams: the verifier of their lines, the comparison with their input, and the verifier of a running stream."""
