"""Whether a label covers a value: a plain reference implementation of the verifier's check of labels."""

from __future__ import annotations

import re

import pyarrow as pa

from reticent.errors import DataError
from reticent.policy.hierarchy import build_levels

NUMBERS = re.compile(r"\[(-?[\d.]+), ?(-?[\d.]+)([\])])")
TEXTS = re.compile(r"\[(.+?), (.+)\]")


def covers(value, label, policy, column):
    bare = label.removesuffix(" or missing") if label else label
    if bare in (value, "*") or (value is None and bare != label):
        return True
    if value is None or bare is None:
        return False
    if bare[:1] + bare[-1:] == "{}":
        return f", {value}, " in f", {bare[1:-1]}, "
    return bare in nodes(value, policy, column) or within(value, bare)


def nodes(value, policy, column):
    try:
        steps = build_levels(policy.columns[column].hierarchy, pa.array([value]), column=column, base=policy.base)
    except DataError:
        return []
    return [names[0].as_py() for names in steps.labels]


def within(value, label):
    if match := NUMBERS.fullmatch(label):
        try:
            number = float(value)
        except ValueError:
            return False
        return float(match[1]) <= number and (
            number <= float(match[2]) if match[3] == "]" else number < float(match[2])
        )
    match = TEXTS.fullmatch(label)
    return match is not None and (match[1] <= value <= match[2] or (match[1] <= value and value[:10] == match[2]))
