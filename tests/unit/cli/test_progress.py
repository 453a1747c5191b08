"""Progress: lines without a terminal, one changing line with it, nothing when it is quiet; no clock decides these tests."""

import io
import sys
import threading

import pytest

from reticent.cli import output


class Token:
    def __init__(self, *told):
        self.progress = told


def test_lines_come_while_the_work_goes_on(monkeypatch):
    told, second = [], threading.Event()

    def say(text):
        told.append(text)
        if len(told) == 2:
            second.set()

    monkeypatch.setattr(output, "say", say)
    with output.show_progress("Searching", output.search_progress(Token(1200, 0.31, 0.2)), interval=0.001):
        assert second.wait(60)
    count = len(told)
    assert told[0].startswith("Searching: 1,200 nodes checked, best loss so far 0.3100, lower bound 0.2000, ")
    assert len(told) == count


def test_quick_work_says_nothing(monkeypatch):
    told = []
    monkeypatch.setattr(output, "say", told.append)
    with output.show_progress("Reading", interval=60):
        pass
    assert told == []


def test_unknown_figures_are_not_printed():
    assert output.search_progress(Token(0, float("inf"), 0.0))() == ""


def test_the_work_may_fail(monkeypatch):
    monkeypatch.setattr(output, "say", lambda _: None)
    with pytest.raises(ValueError, match="x"), output.show_progress("Searching", interval=60):
        raise ValueError("x")
    assert not any(thread.name == "progress" for thread in threading.enumerate())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_is_erased_at_the_end(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with output.show_progress("Searching"):
        assert terminal.getvalue() == "\rSearching\r"
    assert terminal.getvalue().endswith(f"\r{' ' * len('Searching')}\r")
    assert "\n" not in terminal.getvalue()


def test_a_terminal_names_the_steps_and_the_time_of_each(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with output.steps() as step:
        step("Reading")
        step("Verifying")
    lines = [line for line in terminal.getvalue().replace("\r", "\n").splitlines() if line.endswith(" s")]
    assert [line.split(":")[0] for line in lines] == ["  Reading", "  Verifying"]


def test_steps_elsewhere_say_nothing(capsys):
    with output.steps() as step:
        step("Reading")
    assert capsys.readouterr().err == ""
