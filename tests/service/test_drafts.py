"""Drafts: the same figures for every kind, and an end when nobody wants them."""

from __future__ import annotations

import contextlib
import json
from typing import get_args

import pytest
import yaml
from test_jobs_api import endless

from reticent.datasets import feed, series
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.errors import WorkCancelledError
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.policy.settings.kinds import SeriesSettings
from reticent.service.draft_measures import measure, measure_in_subprocess
from reticent.service.pages import drafts
from reticent.service.policy_registry import PolicyRegistry, parse_policy


def test_a_try_out_that_is_not_wanted_any_more_ends_its_process():
    """The search would not end by itself: coming back at all shows that its process was ended."""
    data, policy = endless(3)
    looks = iter([False, True])
    with pytest.raises(WorkCancelledError):
        measure_in_subprocess(data, Bundle.pack(Policy.from_dict(policy)).to_bytes(), is_cancelled=lambda: next(looks))


@pytest.mark.parametrize(
    ("kind", "method", "l"),
    [
        ("stream", "veil", 10),
        ("stream", "delay-free", 10),
        ("stream", "castle", 4),
        ("series", "veil", 4),
        ("series", "m-invariance", 4),
        ("series", "l-diversity", 4),
        ("evolving", "indexed", 4),
    ],
)
def test_every_kind_is_tried(kind, method, l):
    """What would be promised, what a reader guesses right and what a count is worth, on a sample."""
    name, table = ("feed", feed.generate(600, 3)) if kind == "stream" else ("series", series.generate(300, 1, 1)[0])
    files = {"prior.csv": feed.strata(), "kernel.csv": feed.kernel()}
    if kind != "stream":
        files = {"prior.csv": series.prior(), "updates.csv": series.updates()}
    settings = yaml.safe_load(policy_yaml(name))
    own = {"method": method} | ({"m": l} if kind == "series" and method != "veil" else {})
    settings |= {kind: own, "privacy": {"l": l} | ({"k": 5} if method == "castle" else {})}
    with contextlib.closing(PolicyRegistry()) as registry:
        policy = registry.policy(parse_policy(settings, {file: csv_text(content) for file, content in files.items()}))
        figures = measure(table, policy, kind)
    assert figures["method"] == method
    assert figures["claims"]
    assert figures["against"]
    assert figures["records"]["input"] == table.num_rows
    assert figures["preview"]["rows"] or figures["records"]["withheld"]
    assert 0 <= figures["count_error"].get("error", 0) < 3  # nothing is asked of values that are all rare
    if method == "veil":
        assert 1 / l <= figures["guess"] < 3 / l


def test_a_problem_of_the_policy_is_told():
    data, policy = endless(3)
    policy = json.loads(json.dumps(policy)) | {"privacy": {"k": 1000}}
    policy["table"]["method"] = "mondrian"
    from reticent.service.problems import ServiceError

    with pytest.raises(ServiceError, match="nothing was published"):
        measure_in_subprocess(data, Bundle.pack(Policy.from_dict(policy)).to_bytes())


def test_a_table_without_sensitive_values_is_tried():
    table = series.generate(200, 1, 1)[0].select(["patient_id", "age", "sex"])
    columns = {
        "patient_id": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 20]}},
        "sex": "quasi",
    }
    settings = {"version": 1, "person": "patient_id", "columns": columns, "privacy": {"k": 5, "suppression": 0.02}}
    figures = measure(table, Policy.from_dict(settings | {"table": {"method": "mondrian"}}))
    assert figures["risk"]["highest"] <= 1 / 5
    assert 0 < figures["loss"] < 1
    assert figures["guess"] is None
    assert figures["count_error"] == {}


def test_every_method_that_a_policy_may_name_for_a_series_can_be_tried():
    """The page would otherwise leave one out unseen; the starred one is a variant of the method before it."""
    offered = set(drafts.METHODS["series"])
    assert set(get_args(SeriesSettings.model_fields["method"].annotation)) - {"m-distinct*"} == offered
