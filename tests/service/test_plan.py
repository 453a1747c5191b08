"""The studio's plan of a table: what it proposes, and what it leaves as it was sent."""

from __future__ import annotations

import pytest
from serving import InThread, csv

from reticent.datasets import feed
from reticent.policy.level_proposal import propose_levels
from reticent.service.routes.tables import store_table


@pytest.fixture
def hub(tmp_path):
    running = InThread(tmp_path)
    yield running.hub
    running.close()


def test_the_veil_shows_proposed_levels_unless_some_were_chosen(hub):
    """Without them a stream that is begun in the studio would show every time to the second and every postal code whole."""
    pytest.importorskip("nicegui")
    from reticent.service.pages.plan import Plan

    table = feed.generate(2_000, 3)
    plan = Plan.of(hub, store_table(hub, csv(table), "ward.csv")["id"])
    levels = plan.propose_levels(hub)
    policy = hub.policy_registry.policy(plan.bundle())
    assert levels == {name: level for name, level in propose_levels(table, policy).items() if level}
    assert {"admitted", "postcode"} <= set(levels)
    assert {name: policy.columns[name].level for name in levels} == levels
    assert plan.propose_levels(hub) == {}  # what stands there is the custodian's choice now


def test_a_policy_that_was_sent_stays_as_it_is(hub):
    pytest.importorskip("nicegui")
    from reticent.service.pages.plan import Plan

    plan = Plan.of(hub, store_table(hub, csv(feed.generate(300, 3)), "ward.csv")["id"])
    plan.adopt(hub, plan.yaml(), {})
    plan.save(hub)
    again = Plan.of(hub, plan.table["id"])
    assert again.propose_levels(hub) == {}
    assert again.settings == plan.settings
