"""Errors as people read them: what is wrong, what to do next, and the right exit code."""

from __future__ import annotations

import os
import sys
import traceback

from reticent.errors import ReticentError

# A package that only some commands need -> the extra that brings it.
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
    "pymysql": "mysql",
}


def explain(error: Exception) -> int:
    """Prints an error on standard error and returns the exit code."""
    if isinstance(error, ReticentError):
        _say(f"Error: {error.message}")
        if error.hint:
            _say(error.hint)
        return error.exit_code
    if isinstance(error, ImportError) and (name := (error.name or "").partition(".")[0]) in EXTRAS:
        _say(f"Error: this needs {name}, which is not installed; nothing was published.")
        _say(f"Install it: pip install 'reticent[{EXTRAS[name]}]'")
        return 5
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError) and error.errno:
        _say(f"Error: the system refused: {os.strerror(error.errno)}.")
        _say("Check free space and permissions, and where the output goes; what was said to be written is whole.")
        return 5
    if isinstance(error, MemoryError):
        _say("Error: out of memory; nothing was published.")
        return 1
    # The text of a foreign exception may quote the data, so only its type and place are shown.
    last = traceback.extract_tb(error.__traceback__)[-1]
    _say(f"Error: {type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}; nothing was published.")  # noqa: PTH119
    _say("This is a bug in Reticent. Please report the line above.")
    return 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201
