"""prior.csv: what is written is read again; mistakes are named with their line."""

import numpy as np
import pytest

from reticent.engine.veil.prior.file import read_prior, write_prior
from reticent.engine.veil.prior.prior import Prior
from reticent.errors import PolicyError

SHARES = np.array([[0.5, 0.25, 0.0, 0.25], [0.1, 0.2, 0.3, 0.4]])
PRIOR = Prior(
    ("flu", "gout", "mumps", "other"), ({"sex": "f", "age": "[0, 50)"}, {}), SHARES, np.array([400.0, 1_000.0])
)


def test_a_prior_survives_its_file(tmp_path):
    write_prior(PRIOR, tmp_path / "prior.csv", column="ill")
    again = read_prior(tmp_path / "prior.csv", column="ill")
    assert (again.labels, again.strata) == (PRIOR.labels, PRIOR.strata)
    assert again.shares == pytest.approx(PRIOR.shares)
    assert again.sizes == pytest.approx(PRIOR.sizes)


def test_the_file_is_as_documented(tmp_path):
    write_prior(PRIOR, tmp_path / "prior.csv", column="ill")
    lines = (tmp_path / "prior.csv").read_text().splitlines()
    assert lines[:3] == ["sex,age,ill,count", 'f,"[0, 50)",flu,200', 'f,"[0, 50)",gout,100']
    assert lines[4] == "*,*,flu,100"
    assert len(lines) == 8


def test_public_statistics_are_a_prior(tmp_path):
    (tmp_path / "prior.csv").write_text("value;count\nflu;30\ngout;0\nmumps;10\n")
    prior = read_prior(tmp_path / "prior.csv", column="ill")
    assert prior.labels == ("flu", "gout", "mumps", "other")
    assert prior.shares.tolist() == [[0.75, 0, 0.25, 0]]
    assert prior.strata == ({},)


MISTAKES = {
    "ill,number\nflu,3\n": "line 1: the last two columns",
    "ill,count\nflu,3\nflu,4\n": "line 3: this row has the value already",
    "ill,count\nflu,-1\n": "line 2: the count is not a number",
    "ill,count\nflu,nan\n": "line 2: the count is not a number",
    "ill,count\nflu\n": "line 2: 2 cells are needed, 1",
    "ill,count\nflu,0\n": "1 of 1 rows of the prior count nothing",
    "ill,count\n": "0 of 0 rows",
    "": "is empty",
    "sex,ill,count\n*,flu,3\nf,flu,2\n": "1 rows of the prior stand behind wider ones",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(tmp_path, text):
    (tmp_path / "prior.csv").write_text(text)
    with pytest.raises(PolicyError, match=MISTAKES[text]) as error:
        read_prior(tmp_path / "prior.csv", column="ill")
    assert "flu" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PolicyError, match="cannot be read"):
        read_prior(tmp_path / "prior.csv", column="ill")
