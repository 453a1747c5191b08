"""The list of planted bugs stays applicable, and one of them is killed here; `make mutants` tries all."""

import pytest
from run import misplaced, mutants, survives

EVERY = mutants()


@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.name)
def test_every_mutant_can_be_applied(mutant):
    assert misplaced(mutant) == ""
    assert mutant.tests


def test_a_mutant_that_changes_nothing_that_is_tested_survives():
    from dataclasses import replace

    harmless = replace(EVERY[0], file="src/reticent/errors.py", find="Root of the tree", replace="The root of the tree")
    assert survives(replace(harmless, tests=("tests/unit/policy/test_hierarchy.py",))) == "no test fails"


def test_a_planted_bug_is_killed():
    judge = next(mutant for mutant in EVERY if mutant.name == "the judge ignores privacy.l")
    assert survives(judge) == ""
