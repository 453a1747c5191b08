"""Asks a person about guesses that are unsure; elsewhere than on a terminal nothing is asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.cli.output import quiet, say
from reticent.errors import PolicyError
from reticent.policy.section import unknown
from reticent.policy.spec import ROLES

if TYPE_CHECKING:
    from reticent.policy.guess import Guess

_QUESTIONS = 8
"""Nobody answers more of them with care."""


def told_roles(guesses: list[Guess], person: str | None, sensitive: str | None) -> list[Guess]:
    """The guesses with what options say: the column of the person stays inside, the one to protect comes before all other illnesses."""
    names = tuple(g.column for g in guesses)
    for option, name in (("--person", person), ("--sensitive", sensitive)):
        if name is not None and name not in names:
            raise PolicyError(f"{option}: the data has no such column: {unknown(name, names)}")
    if person is not None and person == sensitive:
        raise PolicyError(f"--person and --sensitive both name '{person}'.", hint="Name two columns.")
    roles = {person: "identifier", sensitive: "sensitive"}
    guesses = [replace(g, role=roles[g.column], why="as you said") if g.column in roles else g for g in guesses]
    if sensitive is None:
        return guesses
    reason = "kept inside, since you named another column to protect"
    return [
        replace(g, role="identifier", why=f"{g.why}; {reason}")
        if g.role == "sensitive" and g.column != sensitive
        else g
        for g in guesses
    ]


def ask_roles(guesses: list[Guess]) -> list[Guess]:
    """The guesses as a person has corrected them."""
    if quiet() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return guesses
    doubtful = [g.column for g in guesses if g.unsure][:_QUESTIONS]
    return [_asked(g) if g.column in doubtful else g for g in guesses]


def _asked(guess: Guess) -> Guess:
    """One question; the first letter of a role is enough, and Enter keeps the guess."""
    while True:
        say(f"{guess.column}: {guess.why}. Role ({', '.join(ROLES)})? Enter: {guess.role}")
        answer = sys.stdin.readline().strip().lower()
        role = next((role for role in ROLES if role.startswith(answer)), None) if answer else guess.role
        if role is not None:
            return guess if role == guess.role else replace(guess, role=role, why="as you said")
