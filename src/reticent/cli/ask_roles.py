"""Asks a person about guesses that are unsure; elsewhere than on a terminal nothing is asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.cli.output import quiet, say
from reticent.policy.spec import ROLES

if TYPE_CHECKING:
    from reticent.policy.guess import Guess

_QUESTIONS = 8
"""Nobody answers more of them with care."""


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
