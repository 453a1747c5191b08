"""The project's own configuration: a short allow-list with reasons, public names without old words, run by make."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def words():
    loader = SourceFileLoader("words_of_the_project", str(TOP / "scripts" / "words"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def test_the_allow_list_is_short_and_has_reasons(words):
    config = words.read_config(TOP)
    assert len(config["allow"]) <= words.MOST_ALLOWED == 60
    assert len((TOP / "scripts" / "words.toml").read_text().partition("[[allow]]")[2].splitlines()) <= 60
    assert all(entry["reason"].strip() for entry in config["allow"])


def test_the_lists_of_public_names_have_no_old_word(words):
    check = words.Words(TOP, words.read_config(TOP))
    assert {"docs/reference/names.md", "docs/reference/messages.md"} <= set(check.config["public"]["files"])
    assert [str(finding) for finding in check.check_public() if not check._is_allowed(finding)] == []


def test_make_lint_and_make_check_run_both_checks():
    makefile = (TOP / "Makefile").read_text()
    assert "WORDS := $(BIN)/python scripts/words && $(BIN)/python scripts/words --participles\n" in makefile
    for target in ("lint", "check"):
        recipe = makefile.partition(f"\n{target}: ")[2].partition("\n\n")[0]
        assert "$(WORDS)" in recipe
