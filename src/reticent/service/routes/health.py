"""The health check and the metrics for Prometheus, which are read from the hub at each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel

from reticent.service.access import AuthenticatedRoute
from reticent.service.hub import Hub
from reticent.service.routes.bodies import text_responses
from reticent.service.routes.common import MONITOR, HubDependency, in_thread

_GAUGES = {
    "rows_per_second": "Records released per second, over the last ten seconds",
    "median_ms": "Median time from a batch's arrival to its commit",
    "p99_ms": "99th percentile of the time from a batch's arrival to its commit",
    "pending": "Records pending now",
    "sau": "Share of counterfeit candidates",
    "sau_limit": "Lowest possible share of counterfeit candidates",
    "open_groups": "Groups that can still take records",
    "forced_open_rate": "Share of records that opened a group",
    "persons": "Persons seen so far",
    "omission_rate": "Omission rate: share of true values that are not among the candidates, with noise",
    "alarm": "1 if the omission rate is too high: the prior no longer fits",
}


class _HubCollector(Collector):
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterable[Metric]:
        states = [stream.status() for stream in self._hub.streams.values()]
        rows = CounterMetricFamily("reticent_stream_records", "Records accepted", labels=["stream"])
        for state in states:
            rows.add_metric([state["name"]], state["input"])
        yield rows
        for name, words in _GAUGES.items():
            gauge = GaugeMetricFamily(f"reticent_stream_{name}", words, labels=["stream"])
            for state in states:
                value = state.get(name, state["metrics"].get(name))
                if value is not None:
                    gauge.add_metric([state["name"]], value)
            yield gauge
        yield CounterMetricFamily("reticent_commits", "Transactions committed", value=self._hub.writer.groups)
        yield CounterMetricFamily("reticent_steps", "Changes in these transactions", value=self._hub.writer.steps)
        jobs = GaugeMetricFamily("reticent_jobs", "Jobs by state", labels=["state"])
        for state, number in sorted(Counter(job["state"] for job in self._hub.jobs.all()).items()):
            jobs.add_metric([state], number)
        yield jobs


def exposition(hub: Hub) -> bytes:
    """Return all metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_HubCollector(hub))
    return generate_latest(registry)


router = APIRouter(tags=["server"], route_class=AuthenticatedRoute)


class Health(BaseModel):
    """The answer of the health check."""

    status: str
    version: str


@router.get("/health")
async def health() -> Health:
    """Check that the server answers; the only route that needs no token."""
    return Health(status="ok", version=version("reticent"))


@router.get("/metrics", dependencies=MONITOR, responses=text_responses("text/plain"), response_class=Response)
async def metrics(hub: HubDependency) -> Response:
    """Get the metrics in the text format of Prometheus."""
    return Response(await in_thread(lambda: exposition(hub)), media_type="text/plain; version=0.0.4")
