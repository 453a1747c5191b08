"""Encode columns as integer codes and decode them without loss."""

from reticent.encode.dictionary import Dictionary, EncodedColumns, encode_table

__all__ = ["Dictionary", "EncodedColumns", "encode_table"]
