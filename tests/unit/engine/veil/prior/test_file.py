"""prior.csv: what is written is read again by the one reader; mistakes are named with their line."""

import numpy as np
import pytest

from reticent.engine.veil.prior.file import write_prior
from reticent.engine.veil.prior.prior import Prior
from reticent.errors import PolicyError
from reticent.policy.prior import read_prior, read_strata

SHARES = np.array([[0.5, 0.25, 0.0, 0.25], [0.1, 0.2, 0.3, 0.4]])
PRIOR = Prior(
    ("flu", "gout", "mumps", "other"), ({"sex": "f", "age": "[0, 50)"}, {}), SHARES, np.array([400.0, 1_000.0])
)


def test_a_prior_survives_its_file(tmp_path):
    write_prior(PRIOR, tmp_path / "prior.csv")
    again = read_strata(tmp_path / "prior.csv", "prior")
    assert again.by == ("sex", "age")
    assert again.strata == {
        ("f", "[0, 50)"): {"flu": 200, "gout": 100, "other": 100},
        ("*", "*"): {"flu": 100, "gout": 200, "mumps": 300, "other": 400},
    }
    assert read_prior(tmp_path / "prior.csv", "prior") == {"flu": 300, "gout": 300, "other": 500, "mumps": 300}
    assert (tmp_path / "prior.csv").stat().st_mode & 0o077 == 0


def test_public_statistics_are_a_prior(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\nflu,30\ngout,0\n,2.5\n")
    assert read_strata(tmp_path / "prior.csv", "prior").strata == {(): {"flu": 30, "gout": 0, None: 2.5}}
    (tmp_path / "prior.csv").write_text("flu,30\nflu,2\n")
    assert read_prior(tmp_path / "prior.csv", "prior") == {"flu": 32}


MISTAKES = {
    "value,count\nflu,-1\n": "line 2 .* a count of 0 or more",
    "value,count\nflu,nan\n": "line 2 .* a count of 0 or more",
    "sex,value,count\nm,flu\n": "line 2 .* a count of 0 or more",
    "value,count\nflu,0\n": "holds no counts",
    "value,count\n": "holds no counts",
    "": "holds no counts",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(tmp_path, text):
    (tmp_path / "prior.csv").write_text(text)
    with pytest.raises(PolicyError, match=MISTAKES[text]) as error:
        read_strata(tmp_path / "prior.csv", "prior")
    assert "flu" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PolicyError, match="cannot read"):
        read_strata(tmp_path / "prior.csv", "prior")
