"""Anything may come in: readers, the policy parser, the stream and the core answer with our own errors or with a result.

Bounded, so that it belongs to every run; `--hypothesis-profile` and more examples make it longer.
"""

import io
import json
import string
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent import _core
from reticent.api import anonymize
from reticent.connectors.fhir.read import read_fhir
from reticent.connectors.files import read_table
from reticent.connectors.hl7 import Hl7Lines
from reticent.connectors.inputs import DEFAULT_FHIR
from reticent.connectors.stream import Stream
from reticent.datasets.policies import policy_yaml
from reticent.errors import InternalError, ReticentError
from reticent.policy import Policy
from reticent.publication.records import RecordReader

FEW = settings(max_examples=60)
LEAST = settings(max_examples=12)

words = st.text(string.ascii_letters + string.digits + ' ,;"|\t\n\r\\{}[]:.-é\x00', max_size=12)
tables = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def tried(work):
    """Runs something; our own errors are fine, a bug or anybody else's error is not."""
    try:
        return work()
    except InternalError:
        raise
    except ReticentError:
        return None


@FEW
@given(st.binary(max_size=400) | tables.map(lambda rows: "\n".join(",".join(row) for row in rows).encode()))
def test_readers(data):
    table = tried(lambda: read_table(io.BytesIO(data)))
    assert table is None or table.num_rows > 0


@FEW
@given(st.sampled_from([b"PAR1", b"ARROW1\0\0", b"\x1f\x8b\x08", b"{", b"\xff\xfe"]), st.binary(max_size=300))
def test_readers_of_corrupt_files(magic, rest):
    tried(lambda: read_table(io.BytesIO(magic + rest)))


elements = st.sampled_from(
    [
        "id",
        "subject",
        "encounter",
        "reference",
        "class",
        "code",
        "coding",
        "period",
        "start",
        "end",
        "address",
        "birthDate",
    ]
)
parts = st.recursive(
    st.none() | st.integers() | words | st.just("2025-03-01"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(elements, inner, max_size=4),
    max_leaves=10,
)


@FEW
@given(st.lists(st.dictionaries(elements, parts, min_size=1, max_size=6) | values, max_size=4))
def test_fhir(resources):
    lines = [
        resource | {"resourceType": kind} if isinstance(resource, dict) else resource
        for resource, kind in zip(resources, ["Encounter", "Patient", "Condition", "Observation"], strict=False)
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "all.ndjson"
        file.write_text("\n".join(json.dumps(line) for line in lines))
        tried(lambda: read_fhir(file, DEFAULT_FHIR))


known = st.sampled_from(
    ["version", "columns", "privacy", "person", "stream", "fhir", "sql", "hl7", "table", "k", "l", "t", "role", "quasi"]
)
policies = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | words | known,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known | words, inner, max_size=4),
    max_leaves=12,
)


@FEW
@given(policies)
def test_policies(value):
    tried(lambda: Policy.from_dict(value))
    tried(
        lambda: Policy.from_dict(
            {"version": 1, "columns": {"a": "quasi"}, **(value if isinstance(value, dict) else {})}
        )
    )


@FEW
@given(words | st.text(max_size=60))
def test_policy_files(text):
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("yaml", "json", "toml"):
            file = Path(folder) / f"p.{suffix}"
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            tried(lambda file=file: Policy.load(file))


@FEW
@given(st.binary(max_size=300) | words.map(lambda text: ("MSH|^~\\&|" + text + "\rPID|1||" + text).encode()))
def test_hl7(data):
    policy = Policy.from_dict({**_plain("adt"), "stream": {}})
    lines = Hl7Lines(RecordReader(policy))
    assert 0 <= lines.read(data, last=False)[1] <= len(data)
    batch, _ = lines.read(data, last=True)
    assert batch.total == batch.table.num_rows + len(batch.rejected)


def _plain(kind):
    import yaml

    return yaml.safe_load(policy_yaml(kind))


RULES = {
    "version": 1,
    "person": "id",
    "columns": {
        "id": "identifier",
        "age": "quasi",
        "ill": {"role": "sensitive", "hierarchy": {"tree": {"x": list("abcd")}}},
    },
    "privacy": {"l": 2},
    "prior": {"file": "prior.csv"},
}


@LEAST
@given(
    st.lists(st.binary(max_size=40) | st.fixed_dictionaries({"id": words, "age": words, "ill": values}), max_size=12)
)
def test_stream_protocol(lines):
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.ndjson", Path(folder) / "out.ndjson"
        source.write_bytes(data)
        (Path(folder) / "prior.csv").write_text("value,count\na,3\nb,3\nc,2\nd,2\n")
        with Stream(Policy.from_dict(RULES, base=folder), store=Path(folder) / "s.db", seed=1) as stream:
            done = tried(lambda: stream.run(str(source), str(out)))
        shown = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        if done is not None:
            assert done.records.published == sum(line["type"] == "record" for line in shown)


@LEAST
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdef")), max_size=40),
    st.sampled_from(["anatomy", "optimal", "mondrian", "local"]),
    st.integers(2, 5),
)
def test_no_half_written_release(rows, method, l):
    rules = {"version": 1, "columns": {"age": "quasi", "ill": "sensitive"}, "privacy": {"l": l}}
    table = pa.table({"age": [str(age) for age, _ in rows], "ill": [ill for _, ill in rows]})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "release"
        release = tried(lambda: anonymize(table, Policy.from_dict(rules), method=method, seed=1))
        if release is not None:
            release.to_dir(out)
            assert (out / "release.json").is_file()
        assert [path.name for path in Path(folder).iterdir()] in ([], ["release"])


READER = _core.wire.Reader(["a"], published=[True], released=[True], required=[], numbers=[], missing=[])
codes = st.lists(st.integers(-5, 9), max_size=30).map(lambda xs: np.array(xs, dtype=np.int32))


@FEW
@given(codes, st.integers(-2, 12), st.integers(-2, 12), st.binary(min_size=0, max_size=40))
def test_core_refuses_and_never_panics(column, domain, l, key):
    """A panic in the core is a `PanicException`, which no handler for errors catches."""
    for call in (
        lambda: _core.table.anatomize(column, domain=domain, l=l, key=key),
        lambda: _core.random.permutation(domain, key=key),
        lambda: READER.csv(key, domain, column.tolist(), last=True),
    ):
        try:
            call()
        except (ValueError, OverflowError, TypeError):
            pass
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"an error of another kind: {type(error).__name__}")
