"""Helpers for the files of this folder."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import TYPE_CHECKING, Any

from reticent.errors import ReticentError
from reticent.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable


class Taken:
    """Processor seconds of the parts of one run, and figures that both versions must share."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.figures: dict[str, float] = {}

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a part and count the time of all its threads."""
        start = time.process_time()
        outcome = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start
        return outcome

    def command(self, name: str, words: list[str]) -> None:
        """Run a command, including its start; bytecode is compiled beforehand, as in an installation."""
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, capture_output=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def worded(rules: dict[str, Any], section: str, former: str) -> Policy:
    """Return a policy; an earlier version used another name for the method of a section."""
    try:
        return Policy.from_dict(rules)
    except ReticentError:
        settings = dict(rules[section])
        settings[former] = settings.pop("method")
        return Policy.from_dict({**rules, section: settings})
