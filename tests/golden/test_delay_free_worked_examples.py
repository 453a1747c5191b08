"""Kim, Sung, Chung: Examples 1 and 2, the counts of section 3.3, and the two continuations of section 4.1 (late validation)."""

import json

import pyarrow as pa
import pytest

from reticent.engine.rng import Rng
from reticent.engine.stream.delay_free import DelayFree
from reticent.policy import Policy
from reticent.utility.stream import sau
from reticent.verify import verify


@pytest.fixture
def stream(tmp_path):
    (tmp_path / "past.csv").write_text("value,count\nDiag.A,1\nDiag.B,1\n")
    columns = {"age": "quasi", "sex": "quasi", "diagnosis": "sensitive"}
    rules = {
        "version": 1,
        "columns": columns,
        "prior": {"file": "past.csv"},
        "stream": {"method": "delay-free", "l": 2},
    }
    return DelayFree(Policy.from_dict(rules, base=tmp_path), rng=Rng.from_seed(1))


def arrive(stream, age, sex, diagnosis):
    """Pushes one tuple; gives its QIT row and the ST rows that were published with it."""
    (release,) = stream.push(pa.table({"age": [age], "sex": [sex], "diagnosis": [diagnosis]}))
    return release.tables["tuple"].to_pylist()[0], release.tables["group"].to_pylist()


def test_example_1_and_2(stream):
    qit, st = arrive(stream, 24, "male", "Diag.A")
    assert (qit["age"], qit["sex"]) == (24, "male")
    assert [(row["group"], row["value"], row["count"]) for row in st] == [
        (qit["group"], "Diag.A", 1),
        (qit["group"], "Diag.B", 1),
    ]
    assert stream.metrics["information_loss"] == pytest.approx(1 / 6)
    assert stream.metrics["sau"] == sau(slots=2, tuples=1) == 0.5


@pytest.mark.parametrize(("counts", "holds"), [((1, 1), True), ((2, 1), False), ((2, 2), True)])
def test_counts_of_two_to_one_are_not_2_diverse(stream, tmp_path, counts, holds):
    """Section 3.3: with 2:1 the first diagnosis has a probability of 2/3; Definition 3 asks for at most 1/2."""
    candidates = [["Diag.A", counts[0]], ["Diag.B", counts[1]]]
    lines = [
        {"type": "group", "group": "1", "candidates": candidates},
        {"type": "tuple", "group": "1", "seq": 0, "quasi": {"age": 24, "sex": "male"}, "plain": {}},
    ]
    path = tmp_path / "out.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = verify(path, stream.policy)
    assert [finding.claim for finding in result.refuted] == (
        [] if holds else ["no candidate is above 1/l of its group"]
    )


def test_the_second_tuple_validates_the_counterfeit(stream):
    first, _ = arrive(stream, 24, "male", "Diag.A")
    second, st = arrive(stream, 32, "female", "Diag.B")
    assert second["group"] == first["group"]
    assert st == []  # nothing but (1, (32, F)) is released
    assert stream.metrics["sau"] == 0.0


def test_a_value_whose_count_is_used_up_opens_a_group(stream):
    first, _ = arrive(stream, 24, "male", "Diag.A")
    second, st = arrive(stream, 32, "female", "Diag.A")
    assert second["group"] != first["group"]
    assert len(st) == 2


def test_a_group_takes_no_quasi_identifier_twice(stream):
    """Definition 5: the same person would narrow the candidates down."""
    first, _ = arrive(stream, 24, "male", "Diag.A")
    second, _ = arrive(stream, 24, "male", "Diag.B")
    assert second["group"] != first["group"]
