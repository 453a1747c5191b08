"""An attacker who knows everything but the values: exact posteriors of a stream, by enumeration of all inputs.

What cannot matter any more (the memo of a person who does not come back) is forgotten, which merges equal states.

A model gives, for a hidden state and the next tuple, every outcome with its probability: what is published, and the
hidden state after it. The attacker runs through all transcripts and, inside each, weighs all inputs that may have led to it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class DelayFreeModel:
    """Join a random fitting group, else open one with l - 1 other values, all sets equally likely."""

    domain: int
    l: int

    start = ()

    def outcomes(self, hidden, person, quasi, value, *, returns=True):
        fit = [i for i, (free, members) in enumerate(hidden) if value in free and quasi not in members]
        if fit:
            for i in fit:
                free, members = hidden[i]
                grown = (tuple(v for v in free if v != value), tuple(sorted((*members, quasi))))
                yield (i, None), (*hidden[:i], grown, *hidden[i + 1 :]), 1 / len(fit)
            return
        sets = list(combinations([v for v in range(self.domain) if v != value], self.l - 1))
        for others in sets:
            opened = (tuple(sorted((value, *others))), (quasi,))
            free = tuple(v for v in opened[0] if v != value)
            yield (len(hidden), opened[0]), (*hidden, (free, (quasi,))), 1 / len(sets)


def worst_posterior(model, prior, persons, *, constant=True):
    """The highest posterior of any value of any tuple over all transcripts that can happen.

    Args:
        prior: probability per value; values of different persons are independent.
        persons: who sends each tuple; a person's quasi-identifiers are the person's number.
        constant: whether a person's value is the same every time, or drawn anew for each tuple.
    """
    start = {((), model.start): (1.0, {})}
    return _search(model, prior, persons, constant, start, 0)


def _search(model, prior, persons, constant, states, at):
    if at == len(persons):
        return _largest(states)
    person, returns = persons[at], persons[at] in persons[at + 1 :]
    branches = defaultdict(dict)
    for (values, hidden), (weight, marks) in states.items():
        fixed = dict(values).get(person) if constant else None
        for value, p in enumerate(prior):
            if fixed is not None and value != fixed:
                continue
            share = weight * (1.0 if fixed is not None else p)
            known = (*values, (person, value)) if fixed is None and constant and returns else values
            for event, then, chance in model.outcomes(hidden, person, person, value, returns=returns):
                _add(branches[event], (known, then), share * chance, _scaled(marks, share * chance / weight), at, value)
    return max(_search(model, prior, persons, constant, branch, at + 1) for branch in branches.values())


def _scaled(marks, by):
    return {key: weight * by for key, weight in marks.items()}


def _add(branch, state, weight, marks, at, value):
    total, sums = branch.get(state, (0.0, {}))
    sums = dict(sums)
    for key, mark in {**marks, (at, value): weight}.items():
        sums[key] = sums.get(key, 0.0) + mark
    branch[state] = (total + weight, sums)


def _largest(states):
    total = sum(weight for weight, _ in states.values())
    sums = defaultdict(float)
    for _, marks in states.values():
        for key, weight in marks.items():
            sums[key] += weight
    return max(sums.values()) / total


def transcripts(model, tuples):
    """The exact distribution of the transcript of given tuples (person, value)."""
    found = {((), model.start): 1.0}
    for person, value in tuples:
        then = defaultdict(float)
        for (events, hidden), weight in found.items():
            for event, after, chance in model.outcomes(hidden, person, person, value):
                then[((*events, event), after)] += weight * chance
        found = then
    merged = defaultdict(float)
    for (events, _), weight in found.items():
        merged[events] += weight
    return dict(merged)
