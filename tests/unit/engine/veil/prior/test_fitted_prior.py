"""prior.csv: read_strata reads what write_prior writes."""

import numpy as np
import pytest

from reticent.engine.veil.prior.fitted_prior import write_prior
from reticent.engine.veil.prior.prior import Prior
from reticent.errors import PolicyError
from reticent.policy.prior import read_strata

SHARES = np.array([[0.5, 0.25, 0.0, 0.25], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])
STRATA = ({"sex": "f", "age": "[0, 50)"}, {"sex": "(missing)"}, {})
PRIOR = Prior(("flu", "gout", "mumps", "other"), STRATA, SHARES, np.array([400.0, 1_000.0, 40.0]))


def test_the_file_is_as_documented(tmp_path):
    write_prior(PRIOR, tmp_path / "prior.csv")
    lines = (tmp_path / "prior.csv").read_text().splitlines()
    assert lines[:3] == ["sex,age,value,count", 'f,"[0, 50)",flu,200', 'f,"[0, 50)",gout,100']
    assert lines[4] == ",*,flu,100"
    assert len(lines) == 12


def test_the_file_is_read_back(tmp_path):
    write_prior(PRIOR, tmp_path / "prior.csv")
    again = read_strata(tmp_path / "prior.csv")
    assert again.by == ("sex", "age")
    assert list(again.strata) == [("f", "[0, 50)"), ("", "*"), ("*", "*")]
    for counts, shares, size in zip(again.strata.values(), SHARES, PRIOR.sizes, strict=True):
        assert [counts.get(label, 0) for label in PRIOR.labels] == pytest.approx(shares * size)


@pytest.mark.parametrize(
    ("strata", "hidden"),
    [
        (["f,1", "f,*", "*,1", "*,*"], 0),
        (["f,*", "f,1", "m,1"], 1),
        (["*,1", "f,*", "f,1", "f,2"], 2),
        (["*,*", "f,*", "m,1"], 2),
    ],
)
def test_strata_that_no_record_can_reach_are_refused(tmp_path, strata, hidden):
    file = tmp_path / "prior.csv"
    file.write_text("sex,age,value,count\n" + "".join(f"{cells},flu,1\n" for cells in strata))
    if not hidden:
        assert len(read_strata(file).strata) == len(strata)
        return
    with pytest.raises(PolicyError, match=f"{hidden} strata of prior.csv come after wider strata"):
        read_strata(file)
