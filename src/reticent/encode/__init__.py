"""Columns to integer codes and back, losslessly."""

from reticent.encode.dictionary import Dictionary, Encoded, encode_table

__all__ = ["Dictionary", "Encoded", "encode_table"]
