"""Tables in files: read and write CSV, Parquet, Arrow IPC and NDJSON, also files larger than memory.

CSV cells stay text (a postal code keeps its zeros, ``NA`` stays ``NA``). An empty cell without quotes is null, an empty
cell in quotes is an empty text. The other formats keep their types. Errors name the file, the line, the column and
counts, never a cell.
"""

from reticent.connectors.files.atomic import atomic_file, atomic_path, write_text
from reticent.connectors.files.read import first_of, read_batches, read_head, read_table
from reticent.connectors.files.write import open_table, to_ndjson, write_batches, write_table

__all__ = [
    "atomic_file",
    "atomic_path",
    "first_of",
    "open_table",
    "read_batches",
    "read_head",
    "read_table",
    "to_ndjson",
    "write_batches",
    "write_table",
    "write_text",
]
