"""Verify the lines of a stream under the veil: each record, and with pseudonyms the records of each person.

Guarantee: if all findings hold, lines have exactly the documented keys, and an attacker sees l candidates of the codebook in
    canonical order for every record. The set of a first event is possible in its stratum. With pseudonyms, the events of a
    person count 0, 1, 2, ... in one stratum, and each set can follow the one before by the published transition kernel.
Not covered: without the codebook, strata, sets and steps; without pseudonyms, steps (the verifier of the running stream knows
    the persons and checks them); whether sets were drawn with the right probability.
Cost: one pass; with pseudonyms, memory for one set per person.
Reference: docs/veil.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from reticent.policy import Policy
from reticent.verify.published import Published, cell_text
from reticent.verify.result import Finding, none_of
from reticent.verify.stream.lines import LineFormat, RandomNameCheck, are_single_values
from reticent.verify.veil.metadata import check_level, metadata_findings
from reticent.verify.veil.possible_sets import PossibleSets
from reticent.verify.veil.verifier import METADATA_KEYS, has_pseudonyms, line_findings, prior_findings

_RULES = {
    "form": "every line is a record with the documented keys only",
    "columns": "only columns that the policy releases are published",
    "few": "every record has l candidates",
    "strange": "every candidate is a value of the domain",
    "order": "candidates are in canonical order",
    "stratum": "every record names a stratum of the prior",
    "first": "the set of every first event is possible in its stratum",
    "below": "events are counted from 0",
    "events": "the events of a person count 0, 1, 2, ... in one stratum",
    "step": "every set can follow the one before",
    "names": "pseudonyms look random",
}
_UNCHECKED = {
    "codebook": "strata, sets and steps of veiled records (the stream has no codebook)",
    "link": "which records belong to one person (the stream has no pseudonyms)",
}
_LINE_KEYS = frozenset(["type", "seq", "quasi", "plain", "stratum", "event", "candidates"])
_NAME = re.compile(r"p?[0-9a-f]{16}")
_CHUNK = 4_096


class VeiledLines:
    """Check veiled records; `metadata` is the entry `veil` of the codebook, if there is one."""

    def __init__(self, policy: Policy, metadata: Mapping[str, Any] | None, *, strict: bool = True) -> None:
        self.rows = 0
        self._strict, self._form, self._drawn = strict, LineFormat(policy), RandomNameCheck("p")
        self._policy, self._metadata = policy, metadata
        self._keys = _LINE_KEYS | {"person"} if has_pseudonyms(policy) else _LINE_KEYS
        self._violations: Counter[str] = Counter()
        self._shown: dict[str, set[Any]] = {name: set() for name in policy.quasi}
        self._possible: PossibleSets | None = None
        self._broken = False
        self._l = policy.l_of("stream")
        try:
            self._possible = None if metadata is None else PossibleSets(metadata)
        except (KeyError, TypeError, ValueError, OverflowError, IndexError):
            self._broken = True
        if self._possible is not None:
            self._l = self._possible.line.l
            self._codes = {label: code for code, label in enumerate(self._possible.line.domain)}
        self._firsts: list[tuple[list[int], int]] = []
        self._last: dict[str, tuple[int, int, list[int]]] = {}

    def read(self, line: Mapping[str, Any]) -> None:
        """Check one line."""
        self.rows += 1
        row, event, candidates = line.get("stratum"), line.get("event"), line.get("candidates")
        quasi, plain, person = line.get("quasi"), line.get("plain"), line.get("person", "")
        shaped = type(row) is int and type(event) is int and type(candidates) is list and type(person) is str
        shaped &= not person or _NAME.fullmatch(str(person)) is not None
        if line.keys() != self._keys or not shaped or not are_single_values(quasi) or not are_single_values(plain):
            self._violations["form"] += 1
            return
        assert isinstance(candidates, list) and isinstance(row, int) and isinstance(event, int)  # noqa: S101, PT018
        assert isinstance(quasi, dict) and isinstance(plain, dict)  # noqa: S101, PT018
        for name in quasi.keys() & self._shown.keys():
            self._shown[name].add(quasi[name])
        self._violations["columns"] += not self._form.has_columns(quasi, plain, strict=self._strict)
        self._violations["few"] += len(candidates) != self._l
        self._violations["below"] += event < 0
        if self._possible is None:
            words = [str(value) for value in candidates]
            self._violations["order"] += words != sorted(words)
            return
        codes = [self._codes.get(value, -1) if isinstance(value, str) else -1 for value in candidates]
        self._violations["strange"] += min(codes, default=-1) < 0
        self._violations["order"] += codes != sorted(codes)
        known = 0 <= row < len(self._possible.line.strata)
        self._violations["stratum"] += not known
        if known and len(codes) == self._l and min(codes) >= 0:
            self._check_person(person, row, event, codes)

    def _check_person(self, person: str, stratum: int, event: int, codes: list[int]) -> None:
        assert self._possible is not None  # noqa: S101 - called only with a codebook
        if event == 0:
            self._firsts.append((codes, stratum))
            if len(self._firsts) >= _CHUNK:
                self._check_first_events()
        before = self._last.get(person) if person else None
        if person:
            expected = (stratum, 0) if before is None else (before[0], before[1] + 1)
            self._violations["events"] += (stratum, event) != expected
            self._violations["names"] += before is None and self._strict and not self._drawn.accepts(person)
            self._violations["step"] += before is not None and not self._possible.can_step(stratum, before[2], codes)
            self._last[person] = stratum, event, codes

    def _check_first_events(self) -> None:
        if self._firsts and self._possible is not None:
            sets, rows = zip(*self._firsts, strict=True)
            self._violations["first"] += self._possible.count_impossible_sets(np.array(sets), np.array(rows))
            self._firsts = []

    def findings(self, claims: Mapping[str, Any]) -> list[Finding]:
        """Return one finding per rule that can be checked, and the findings about the codebook."""
        self._check_first_events()
        if self._broken:
            return [Finding("the codebook is well-formed", holds=False)]
        no_codebook = self._possible is None
        skipped = {"strange", "stratum", "first"} if no_codebook else set()
        skipped |= {"events", "step", "names"} if no_codebook or not has_pseudonyms(self._policy) else set()
        findings = [none_of(words, self._violations[rule]) for rule, words in _RULES.items() if rule not in skipped]
        findings += [check_level(map(cell_text, labels), self._policy, name) for name, labels in self._shown.items()]
        if self._possible is not None and self._metadata is not None:
            release = Published("", "veil", kind="stream", claims=claims or {"veil": self._possible.line.l})
            unknown = len(set(self._metadata) - METADATA_KEYS)
            findings.append(none_of("the codebook has only documented entries", unknown))
            findings += line_findings(self._possible.line, self._policy, release)
            findings += prior_findings(self._possible.line, self._metadata, self._policy)
            findings += metadata_findings(self._possible.line, self._metadata, self._policy, "stream")
        return findings

    def unchecked_notes(self) -> list[str]:
        """Return notes about what could not be checked."""
        missing = ["codebook"] * (self._possible is None) + ["link"] * (not has_pseudonyms(self._policy))
        return [_UNCHECKED[name] for name in missing]
