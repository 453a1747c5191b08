"""Prints errors for users: what is wrong and what to do next, with the exit code."""

from __future__ import annotations

import os
import sys
import traceback

from reticent.errors import ReticentError

# Optional package -> the extra that installs it.
EXTRAS = {
    "scipy": "audit",
    "sklearn": "audit",
    "threadpoolctl": "audit",
    "matplotlib": "reproduce",
    "fastapi": "server",
    "uvicorn": "server",
    "nicegui": "server",
    "prometheus_client": "server",
    "confluent_kafka": "kafka",
    "pyspark": "spark",
    "psycopg": "postgres",
    "adbc_driver_postgresql": "postgres",
    "fhirpathpy": "fhir",
    "python_calamine": "excel",
    "pyreadstat": "stats",
    "fsspec": "cloud",
    "duckdb": "duckdb",
}


def explain(error: Exception) -> int:
    """Print an error to standard error and return the exit code."""
    if isinstance(error, ReticentError):
        _say(f"Error: {error.message}")
        if error.hint:
            _say(error.hint)
        return error.exit_code
    if isinstance(error, ImportError) and (name := (error.name or "").partition(".")[0]) in EXTRAS:
        _say(f"Error: the package {name} is not installed. Nothing was published.")
        _say(f"Install it: pip install 'reticent[{EXTRAS[name]}]'")
        return 5
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError) and error.errno:
        _say(f"Error: the operating system reports: {os.strerror(error.errno)}.")
        _say("Check the disk space, the permissions and the output path. Files reported as written are complete.")
        return 5
    if isinstance(error, MemoryError):
        _say("Error: out of memory. Nothing was published.")
        return 1
    # The text of another library's exception may quote the data, so only its type and line are shown.
    last = traceback.extract_tb(error.__traceback__)[-1]
    _say(f"Error: {type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}. Nothing was published.")  # noqa: PTH119
    _say("This is a bug in Reticent. Please report the line above.")
    return 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201
