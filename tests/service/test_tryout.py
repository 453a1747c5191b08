"""Try-outs end when nobody wants them."""

from __future__ import annotations

import json

import pytest
from test_jobs_api import endless

from reticent.errors import UnwantedError
from reticent.policy import Policy
from reticent.policy.bundle import Bundle
from reticent.service.tryout import measure_apart


def test_a_try_out_that_is_not_wanted_any_more_ends_its_process():
    """The search would not end by itself: coming back at all shows that its process was ended."""
    data, policy = endless(3)
    looks = iter([False, True])
    with pytest.raises(UnwantedError):
        measure_apart(data, Bundle.pack(Policy.from_dict(policy)).to_bytes(), unwanted=lambda: next(looks))


def test_a_problem_of_the_policy_is_told():
    data, policy = endless(3)
    policy = json.loads(json.dumps(policy)) | {"privacy": {"k": 1000}}
    policy["table"]["method"] = "mondrian"
    from reticent.service.problems import ServiceError

    with pytest.raises(ServiceError, match="nothing was published"):
        measure_apart(data, Bundle.pack(Policy.from_dict(policy)).to_bytes())
