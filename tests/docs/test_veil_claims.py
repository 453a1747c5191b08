"""Every test that the page on the veil names exists, in the file it names."""

import re
from pathlib import Path

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "veil.md").read_text(encoding="utf-8")
FILES = [
    "tests/attack/test_veil_exact.py",
    "tests/unit/engine/veil/test_veil_kernel.py",
    "tests/property/test_veil_hierarchy.py",
    "tests/unit/engine/veil/test_veil_events.py",
    "tests/unit/engine/veil/prior/test_kernel.py",
    "tests/unit/engine/veil/prior/test_trajectory_attack.py",
    "tests/unit/engine/veil/prior/test_fit_on_release.py",
    "tests/unit/cli/test_init_command.py",
    "tests/integration/test_veil.py",
    "tests/integration/test_veil_classes.py",
    "tests/integration/test_veil_figures.py",
    "tests/attack/test_veil_evolving.py",
    "tests/attack/test_veil_households.py",
    "tests/attack/test_veil_omission_rate.py",
    "tests/attack/test_unseen_changes.py",
    "tests/integration/test_identifier_notations.py",
    "tests/attack/test_veil_persons.py",
    "tests/integration/test_population.py",
    "tests/integration/test_veil_counts.py",
    "tests/integration/test_veil_warmup.py",
    "tests/unit/engine/veil/prior/test_attacker.py",
    "tests/unit/read/test_persons.py",
    "tests/unit/read/test_received.py",
    "tests/unit/read/test_veil.py",
]


def test_the_page_names_tests_that_exist():
    names = set(re.findall(r"`(test_\w+)`", PAGE))
    tests = {name for file in FILES for name in re.findall(r"^def (test_\w+)", (TOP / file).read_text(), re.MULTILINE)}
    assert len(names) > 20
    assert names <= tests
    assert all(file in PAGE for file in FILES)
    assert "fn false_candidates_do_not_depend_on_the_true_value" in (TOP / "core/src/veil/slots.rs").read_text()
