"""Columns to integer codes and back, losslessly."""

from reticent.encode.dictionary import Dictionary, EncodedColumns, encode_table

__all__ = ["Dictionary", "EncodedColumns", "encode_table"]
