"""Fuzzing led by coverage: atheris changes bytes and keeps those that reach new lines.

`python tests/fuzz/guided.py policy 0 -max_total_time=600` looks for ten minutes; the tests run each target for a bounded number
of inputs, the second word. A target ends with a result or with one of our own errors; anything else is a finding, and atheris writes the input down.
"""

import contextlib
import io
import os
import sys

import atheris

with atheris.instrument_imports(include=["reticent"]):
    from reticent import _core
    from reticent.connectors.files import read_table
    from reticent.connectors.hl7 import Hl7Lines
    from reticent.errors import InternalError, ReticentError
    from reticent.policy import Policy
    from reticent.publication.blocks import CsvLineFormat, JsonLineFormat
    from reticent.publication.records import RecordReader

import numpy as np
import yaml

COLUMNS = {"patient_id": "identifier", "sex": "quasi", "diagnosis": "sensitive"}
RULES = Policy.from_dict({"version": 1, "person": "patient_id", "columns": COLUMNS})
PLACES = {"patient_id": "PID-3.1", "sex": "PID-8", "diagnosis": "DG1-3.1"}
MESSAGES = Policy.from_dict(
    {"version": 1, "person": "patient_id", "hl7": {"columns": PLACES}, "columns": COLUMNS, "stream": {}}
)


def policy(data):
    """A policy as somebody may have typed it: any YAML, alone and under a sound beginning."""
    try:
        value = yaml.safe_load(data.decode("utf-8", "replace"))
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError, KeyError, AttributeError):
        return  # the parser's own; `Policy.load` guards it
    Policy.from_dict(value)
    if isinstance(value, dict):
        Policy.from_dict({"version": 1, "columns": {"a": "quasi", "b": "sensitive"}, **value})


def files(data):
    """A file of any format."""
    read_table(io.BytesIO(data))


def lines(data):
    """The three forms of a stream, cut into records; every record is read or set aside."""
    plain = RecordReader(RULES)
    for reader in (CsvLineFormat(plain), JsonLineFormat(plain), Hl7Lines(RecordReader(MESSAGES))):
        reader.begin(b"patient_id,sex,diagnosis\n")
        batch, end = reader.read(data, last=False)
        assert 0 <= end <= len(data)
        assert batch.total == batch.table.num_rows + len(batch.rejected)


def core(data):
    """The compiled core through its Python face: wrong numbers are refused, a panic is a finding."""
    given = atheris.FuzzedDataProvider(data)
    l, domain, key = given.ConsumeIntInRange(-3, 20), given.ConsumeIntInRange(-3, 40), given.ConsumeBytes(32)
    codes = np.array(given.ConsumeIntListInRange(given.ConsumeIntInRange(0, 64), -3, 40), dtype=np.int32)
    for call in (
        lambda: _core.table.anatomize(codes, domain=domain, l=l, key=key),
        lambda: _core.random.permutation(domain, key=key),
    ):
        with contextlib.suppress(ValueError, OverflowError, TypeError):
            call()


TARGETS = {work.__name__: work for work in (policy, files, lines, core)}


def guarded(work, most):
    """Our own errors are answers; a bug of ours or anybody else's error is a finding. Ends after `most` inputs, if not 0."""
    left = most

    def once(data):
        nonlocal left
        try:
            work(data)
        except InternalError:
            raise
        except ReticentError:
            pass
        left -= 1
        if left == 0:
            os._exit(0)  # at once: the fuzzer's own end may wait for ever for the threads of other libraries

    return once


if __name__ == "__main__":
    target, inputs = TARGETS[sys.argv.pop(1)], int(sys.argv.pop(1))
    atheris.Setup(sys.argv, guarded(target, inputs))
    atheris.Fuzz()
