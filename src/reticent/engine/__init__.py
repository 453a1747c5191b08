"""One engine per kind of data: table, evolving, series, stream."""
