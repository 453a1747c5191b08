"""The class design: exact, small, and uniform inside every class."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.engine.classes import choices, design
from reticent.errors import GuaranteeError


@st.composite
def eligible(draw):
    l = draw(st.integers(1, 5))
    counts = draw(st.lists(st.integers(0, 30), min_size=l, max_size=12))
    cap = max(1, sum(counts) // l)
    counts = [min(c, cap) for c in counts]
    while sum(counts) < l * max(counts) or not any(counts):
        counts = [c + 1 for c in counts]
        if len(counts) == l:
            counts = [max(counts)] * l
    return dict(enumerate(counts)), l, draw(st.integers(1, 3))


@given(eligible())
def test_the_slots_add_up_to_the_prior(case):
    prior, l, copies = case
    classes = design(prior, l, copies=copies)
    total = sum(prior.values())
    assert sum(c.weight for c in classes) == 1
    assert all(c.weight > 0 and len(c.values) == copies * l for c in classes)
    assert len(classes) <= len(prior) + 1
    for value, count in prior.items():
        assert sum(c.weight * c.copies(value) for c in classes) == Fraction(copies * l * count, total)


@given(eligible())
def test_given_its_class_every_slot_is_equally_likely(case):
    prior, l, copies = case
    classes = design(prior, l, copies=copies)
    drawn, total = choices(classes), sum(prior.values())
    for number, entry in enumerate(classes):
        for value in set(entry.values):
            joint = Fraction(prior[value], total) * dict(drawn[value])[number]
            assert joint / entry.weight == Fraction(entry.copies(value), copies * l)
            assert entry.copies(value) <= copies


def test_a_set_class_holds_different_values():
    assert all(len(set(c.values)) == 3 for c in design({0: 4, 1: 4, 2: 3, 3: 2, 4: 1}, 3))


@pytest.mark.parametrize("prior", [{0: 3, 1: 1, 2: 1}, {0: 1}, {}])
def test_an_ineligible_prior_is_refused(prior):
    with pytest.raises(GuaranteeError, match="l = 2"):
        design(prior, 2)


def test_a_large_domain_is_quick_and_exact():
    prior = {v: 1 + 50_000 // (v + 20) for v in range(4848)}
    classes = design(prior, 10)
    assert sum(c.weight for c in classes) == 1
    assert len(classes) <= len(prior)
