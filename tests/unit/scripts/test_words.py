"""The check of words fails on what it must find, names it, and passes a clean tree."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]


def load_script():
    loader = SourceFileLoader("words_script", str(TOP / "scripts" / "words"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


words = load_script()
CONFIG = words.read_config(TOP) | {"allow": []}
"""The configuration of the project, without what only the project's own files need."""
FORMS = [(word, form) for word, entry in CONFIG["banned"].items() for form in [word, *entry.get("forms", [])]]
OLD = next(iter(CONFIG["banned"]))


@pytest.fixture
def tree(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for page in CONFIG["public"]["files"]:
        plant(tmp_path, page, "# Reference\n\nThe omission rate of a release.\n")
    plant(tmp_path, "src/reticent/engine/veil/prior.py", "def count_persons(records):\n    return len(records)\n")
    plant(tmp_path, "core/src/veil/line.rs", "pub fn segment(stratum: usize) -> usize { stratum }\n")
    plant(tmp_path, "docs/veil.md", "Each record has an event. The household and its members.\n")
    return tmp_path


def plant(tree, name, text):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(tree, **changes):
    return [str(finding) for finding in words.Words(tree, CONFIG | changes).check()]


def check_names(tree, **changes):
    settings = CONFIG["participles"] | {"reviewed": {}} | changes
    return [str(finding) for finding in words.Participles(tree, CONFIG | {"participles": settings}).check()]


def test_a_clean_tree_passes(tree):
    assert check(tree) == []
    assert check_names(tree) == []


@pytest.mark.parametrize(("word", "form"), FORMS)
def test_every_banned_word_is_found_in_a_sentence(tree, word, form):
    plant(tree, "docs/page.md", f"A page.\n\nIt says {form.capitalize()}, and {form} again.\n")
    use = CONFIG["banned"][word]["use"]
    assert check(tree) == [
        f"docs/page.md:3: '{form.capitalize()}' is banned; use {use}",
        f"docs/page.md:3: '{form}' is banned; use {use}",
    ]


@pytest.mark.parametrize(
    "name",
    [OLD, f"{OLD}_key", f"key_of_{OLD}", f"{OLD}Key", f"the{OLD.capitalize()}Key", f"_{OLD.upper()}_KEY", f"{OLD}2"],
)
def test_an_old_identifier_is_found(tree, name):
    plant(tree, "src/reticent/a.py", f"\n{name} = 1\n")
    plant(tree, "core/src/a.rs", f"let {name} = 1;\n")
    found = check(tree)
    assert [finding.rpartition(": '")[0] for finding in found] == ["core/src/a.rs:1", "src/reticent/a.py:2"]


@pytest.mark.parametrize("name", [f"{OLD}hold", f"ware{OLD}", f"{OLD.capitalize()}hold", f"WARE{OLD.upper()}"])
def test_a_longer_word_is_another_word(tree, name):
    plant(tree, "src/reticent/a.py", f'{name} = "{name}"  # {name}\n')
    assert check(tree) == []


@pytest.mark.parametrize("name", [f"src/reticent/{OLD}.py", f"docs/the-{OLD}.md", f"tests/{OLD}/test_it.py"])
def test_an_old_file_name_is_found(tree, name):
    plant(tree, name, "")
    assert check(tree) == [f"{name}:0: '{OLD}' is banned in the file's name; use {CONFIG['banned'][OLD]['use']}"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/reticent/a.py", f'"""The {OLD} of it."""\n'),
        ("src/reticent/a.py", f"# the {OLD}\n"),
        ("src/reticent/a.py", f'TEXT = "one line\\n{OLD} is next"\n'),
        ("core/src/a.rs", f"/// The {OLD}.\n"),
        ("policy.yaml", f"{OLD}: 1\n"),
        ("settings.toml", f"{OLD} = 1\n"),
        ("Makefile", f"{OLD}:\n"),
        ("style.css", f".{OLD} {{}}\n"),
        ("page.html", f"<p>{OLD}</p>\n"),
        ("CHANGELOG.md", f"- The {OLD}\n"),
        ("a.ipynb", f'{{"cells": [{{"source": ["The {OLD}"], "outputs": ["{OLD}"]}}]}}'),
    ],
)
def test_every_kind_of_text_is_read(tree, name, text):
    plant(tree, name, text)
    assert [finding.split(":")[0] for finding in check(tree)] == [name]


@pytest.mark.parametrize(
    "name", ["LICENSE", "core/Cargo.lock", "bench/results/a.json", "src/reticent/policy/former.py"]
)
def test_exempt_files_are_not_read(tree, name):
    plant(tree, name, OLD)
    assert check(tree) == []


def test_ignored_and_binary_files_are_not_read(tree):
    plant(tree, ".gitignore", "made/\n")
    plant(tree, "made/a.py", OLD)
    plant(tree, "a.bin", f"\0 {OLD}")
    assert check(tree) == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("src/reticent/service/layout.py", "class Visit:\n    pass\n", "class 'Visit'; use page context"),
        ("src/reticent/service/layout.py", "def show(visit):\n    pass\n", "parameter 'visit'; use page context"),
        ("src/reticent/engine/evolving/lives.py", "", "the file's name is an old one; use person state"),
        ("src/reticent/verify/papers.py", "", "the file's name is an old one; use metadata files"),
        (
            "src/reticent/policy/settings/kinds.py",
            "class PriorSettings:\n    order: str\n",
            "field 'order'; use value_order",
        ),
        (
            "src/reticent/policy/settings/kinds.py",
            "class PriorSettings:\n    unit: str\n",
            "field 'unit'; use household",
        ),
        ("src/reticent/verify/veil/lines.py", 'KEYS = ("row", "event")\n', "key 'row'; use stratum"),
        (
            "src/reticent/api.py",
            "def publish(data, *, watch):\n    pass\n",
            "parameter 'watch'; use cancellation token",
        ),
        ("src/reticent/release/release.py", "class Counts:\n    held: int\n", "field 'held'; use withheld"),
        ("core/src/veil/first.rs", "fn line(row: usize) {}\n", "field 'row'; use stratum"),
        ("core/src/table/watch.rs", "", "the file's name is an old one; use cancellation token"),
        ("tests/test_a.py", "def test_decoys():\n    pass\n", "function 'test_decoys'; use false candidates"),
        ("bench/a.py", "def count():\n    truth = 1\n", "variable 'truth'; use true value"),
    ],
)
def test_a_restricted_name_is_found(tree, name, text, found):
    plant(tree, name, text)
    (finding,) = check(tree)
    assert finding.startswith(f"{name}:")
    assert found in finding


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/reticent/datasets/courses.py", "class Visit:\n    row: int\n"),
        ("src/reticent/service/layout.py", '"""A visit of a patient."""\n'),
        ("src/reticent/policy/settings/kinds.py", "class SqlSettings:\n    order: str\n"),
        ("src/reticent/read/windows.py", "def cut(unit):\n    return unit\n"),
        ("core/src/table/a.rs", '// watch: it\nconst TEXT: &str = "watch: it";\n'),
    ],
)
def test_a_restricted_word_keeps_its_good_uses(tree, name, text):
    plant(tree, name, text)
    assert check(tree) == []


@pytest.mark.parametrize(
    "text", ["records left out", "`unit`", "{unit: x}", "held back", "a Steward", "a try-out", "the qi"]
)
def test_an_old_public_name_is_found(tree, text):
    plant(tree, "docs/reference/names.md", f"# Names\n\n{text}\n")
    (finding,) = check(tree)
    assert finding.startswith("docs/reference/names.md:3: ")
    assert "old public word" in finding


def test_a_missing_page_of_public_names_is_found(tree):
    (tree / "docs/reference/names.md").unlink()
    assert check(tree) == ["docs/reference/names.md:0: the page of public names is missing; run scripts/reference"]


def entry(**changes):
    return {"file": "docs/*.md", "word": OLD, "line": f"White {OLD}", "reason": "A name."} | changes


def test_an_allowed_line_passes_and_no_other(tree):
    plant(tree, "docs/page.md", f"The White {OLD}.\nThe {OLD}.\n")
    (finding,) = check(tree, allow=[entry()])
    assert finding.startswith("docs/page.md:2: ")


def test_a_word_next_to_an_allowed_one_is_found(tree):
    plant(tree, "docs/page.md", f"The {OLD} is no White {OLD}.\n")
    assert len(check(tree, allow=[entry()])) == 1


def test_an_allow_entry_that_matches_nothing_is_found(tree):
    (finding,) = check(tree, allow=[entry()])
    assert f"allow entry that matches nothing, remove it: docs/*.md, word '{OLD}', line 'White {OLD}'" in finding


def test_an_allow_entry_without_a_reason_is_found(tree):
    plant(tree, "docs/page.md", f"The White {OLD}.\n")
    (finding,) = check(tree, allow=[entry(reason=" ")])
    assert "allow entry without a reason" in finding


def test_a_long_allow_list_is_refused(tree):
    plant(tree, "docs/page.md", f"The White {OLD}.\n")
    assert check(tree, allow=[entry()] * 60) == []
    (finding,) = check(tree, allow=[entry()] * 61)
    assert "61 allow entries; at most 60 may exist" in finding


FUNCTIONS = """
class Release:
    def _as_told(self):
        def _inner_counted():
            pass

    @property
    def published(self):
        pass

    @functools.cached_property
    def seen(self):
        pass

    def is_closed(self):
        pass

    def _has_ended(self):
        pass

    def __missing__(self):
        pass


async def wait_for_sending(): ...
def feed(): ...
def make_string(): ...
def read(): ...
def told_by(): ...
"""


def test_participle_functions_are_found(tree):
    plant(tree, "src/reticent/a.py", FUNCTIONS)
    plant(tree, "tests/a.py", FUNCTIONS)
    ends = "ends in a participle; name it by a verb or a noun"
    assert check_names(tree) == [
        f"src/reticent/a.py:3: function 'Release._as_told' {ends}",
        f"src/reticent/a.py:4: function 'Release._as_told._inner_counted' {ends}",
        f"src/reticent/a.py:25: function 'wait_for_sending' {ends}",
    ]


def test_a_reviewed_participle_needs_a_reason_and_a_function(tree):
    plant(tree, "src/reticent/a.py", "def published(): ...\n")
    place = "src/reticent/a.py:published"
    assert check_names(tree, reviewed={place: "The method of a paper."}) == []
    assert len(check_names(tree, reviewed={place: ""})) == 1
    (finding,) = check_names(tree, reviewed={place: "The method of a paper.", "src/reticent/b.py:made": "Another."})
    assert "reviewed participle that does not exist, remove it: src/reticent/b.py:made" in finding


def test_more_than_twenty_reviewed_participles_are_refused(tree):
    names = [f"{'a' * number}_made" for number in range(1, 22)]
    plant(tree, "src/reticent/a.py", "".join(f"def {name}(): ...\n" for name in names))
    reviewed = {f"src/reticent/a.py:{name}": "The method of a paper." for name in names}
    (finding,) = check_names(tree, reviewed=reviewed)
    assert "21 reviewed participles; at most 20 may exist" in finding


def run(tree, *options):
    command = [sys.executable, TOP / "scripts" / "words", "--root", tree, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_exit_code_says_whether_there_are_findings(tree):
    plant(tree, "scripts/words.toml", f'exempt = ["scripts/words.toml"]\n[banned]\n{OLD} = {{use = "home"}}\n')
    assert run(tree).returncode == 0
    plant(tree, "docs/page.md", f"The {OLD}.\nThe {OLD}.\n")
    plant(tree, "src/reticent/a.py", "def counted(): ...\n")
    done = run(tree)
    assert done.returncode == 1
    assert f"docs/page.md:1: '{OLD}' is banned; use home\n" in done.stdout
    assert f"     2 {OLD}\n" in run(tree, "--count").stdout
    done = run(tree, "--participles")
    assert done.returncode == 1
    assert "src/reticent/a.py:1: function 'counted'" in done.stdout
