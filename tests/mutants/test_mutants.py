"""The planted bugs can all be applied, and one of them is killed here; `make mutants` tries all."""

import ast
from dataclasses import replace
from textwrap import dedent

import pytest
import rust
from pattern import PatternError, mutate
from run import misfit, mutants, part_of, survives

EVERY = mutants()
CODE = dedent('''
    LIMIT = 3

    class Gate:
        """A gate."""

        def check(self, number, least):
            if number is not None and number < least:
                raise ValueError(number)
            elif number == 7:
                return None
            self.note(number, least=least, again=False)
            total = number + number
            return total - least

        def read(self, text):
            def inner(word):
                return word + word

            try:
                found = self.lists[text]
            except KeyError:
                found = []
            except OSError:
                found = None
            return {"text": inner(text), "found": found}
''')


def changed(symbol, find, replace):
    """The lines that a mutant takes away and those that it brings."""
    before, after = (ast.unparse(ast.parse(text)).split("\n") for text in (CODE, mutate(CODE, symbol, find, replace)))
    taken, brought = ([line.strip() for line in a if line not in b] for a, b in ((before, after), (after, before)))
    return taken, brought


def test_every_mutant_can_be_applied():
    assert {mutant.name: reason for mutant in EVERY if (reason := misfit(mutant))} == {}


def test_every_mutant_has_a_name_of_its_own():
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)


def test_parts_are_the_whole():
    assert sorted(m.name for n in (1, 2, 3) for m in part_of(EVERY, f"{n}/3")) == sorted(m.name for m in EVERY)
    with pytest.raises(ValueError, match="4/3"):
        part_of(EVERY, "4/3")


def test_a_mutant_that_changes_nothing_that_is_tested_survives():
    harmless = replace(EVERY[0], symbol="reticent.errors:", find="from __future__ import annotations", replace="pass")
    assert survives(replace(harmless, tests=("tests/unit/policy/test_hierarchy.py",))) == "no test fails"


def test_a_mutant_that_does_not_fit_survives():
    assert survives(replace(EVERY[0], symbol="reticent.nowhere:f")) == "there is no src/reticent/nowhere.py"
    assert survives(replace(EVERY[0], symbol="reticent.errors:nothing")) == "there is no nothing"


def test_a_planted_bug_is_killed():
    requirement = next(mutant for mutant in EVERY if mutant.name == "the verifier ignores privacy.l")
    assert survives(requirement) == ""


@pytest.mark.parametrize(
    ("symbol", "find", "replacement", "taken", "brought"),
    [
        ("Gate.check", "$a = $b + $b", "$a = $b", ["total = number + number"], ["total = number"]),
        ("", "$a = 3", "$a = 4", ["LIMIT = 3"], ["LIMIT = 4"]),
        ("Gate.read.inner", "$a + $a", "$a", ["return word + word"], ["return word"]),
        ("Gate.check", "self.$a($b, ...)", "", ["self.note(number, least=least, again=False)"], []),
        (
            "Gate.check",
            "$a(..., again=False)",
            "$a(..., again=True)",
            ["self.note(number, least=least, again=False)"],
            ["self.note(number, least=least, again=True)"],
        ),
        (
            "Gate.check",
            "$a($b, $c=$c, $d=False)",
            "$a($b)",
            ["self.note(number, least=least, again=False)"],
            ["self.note(number)"],
        ),
        (
            "Gate.check",
            "$a = $b + $b\nreturn $a - $c",
            "return $b + $c",
            ["total = number + number", "return total - least"],
            ["return number + least"],
        ),
        ("Gate.read", "except OSError: ...", "", ["except OSError:", "found = None"], []),
        (
            "Gate.read",
            '{**..., "found": $a}',
            '{**..., "found": None}',
            ["return {'text': inner(text), 'found': found}"],
            ["return {'text': inner(text), 'found': None}"],
        ),
    ],
)
def test_code_is_found_by_its_form(symbol, find, replacement, taken, brought):
    assert changed(symbol, find, replacement) == (taken, brought)


def test_an_omitted_body_is_kept():
    taken, brought = changed("Gate.check", "if $a is not None and $a < $b: ...", "if $a < 0: ...")
    assert taken == ["if number is not None and number < least:"]
    assert brought == ["if number < 0:"]


@pytest.mark.parametrize(
    ("symbol", "find", "replacement", "reason"),
    [
        ("Gate.check", "return $a", "return 0", "2 times"),
        ("Gate.check", "$a - $a", "$a", "0 times"),
        ("Gate.read", "$a + $a", "$a", "0 times"),
        ("Gate.write", "$a + $a", "$a", "no Gate.write"),
        ("Gate.check", "$a - $b", "$c", r"\$c is not in the code"),
        ("Gate.check", "$a - $b", "$a - $b", "changes nothing"),
        ("Gate.check", "if $a", "pass", "not Python"),
        ("Gate.check", "", "pass", "no code"),
    ],
)
def test_what_is_not_found_once_is_refused(symbol, find, replacement, reason):
    with pytest.raises(PatternError, match=reason):
        mutate(CODE, symbol, find, replacement)


RUST = """
fn least(x: &'a [u8]) -> u8 { b'}' }
// fn other() { x + 1 }
fn other(x: u64) -> u64 {
    let y = x + 1; /* }{ */
    let z = "} x + 1";
    y  +  x
}
"""


def test_tokens_of_rust():
    code = """a.len()>=1..=2 && 'x' != b"\\"" // end\n'b: 'c, r#"a"b"# 0.5 1..n"""
    spaced = """a . len ( ) >= 1 ..= 2 && 'x' != b"\\"" 'b : 'c , r#"a"b"# 0.5 1 .. n"""
    assert [token.text for token in rust.tokens(code)] == spaced.split()


def test_code_of_the_core_is_found_by_its_tokens():
    assert rust.mutate(RUST, "other", "$a + 1", "$a + 2") == RUST.replace("= x + 1", "= x + 2")
    assert rust.mutate(RUST, "other", "let $a = $b + 1; let", "let $a = $b; let").count("let y = x; let z =") == 1
    assert rust.mutate(RUST, "least", "b'}'", "0") == RUST.replace("b'}'", "0")
    for function, find in (("other", "$a + $b"), ("other", "$a + $a"), ("least", "x + 1"), ("none", "x")):
        with pytest.raises(PatternError):
            rust.mutate(RUST, function, find, "0")
