"""Before a stream is begun: everything that would refuse it is asked first, so that a refusal leaves nothing behind."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.connectors.runner.batches import CsvLines
from reticent.connectors.runner.feed import Feed, guess_form
from reticent.connectors.runner.sink import taken
from reticent.engine import publisher
from reticent.engine.rng import Rng

if TYPE_CHECKING:
    from reticent.policy import Policy


def rehearse(policy: Policy, source: str, target: str, form: str | None = None) -> None:
    """Builds the engine, opens the source and looks at its beginning, and makes nothing.

    Raises:
        ReticentError: as the stream itself would: the policy cannot be met, or the source is not what the policy describes,
            or the target holds something already.
    """
    if target != "-" and (path := Path(target)).is_file() and path.stat().st_size:
        raise taken(path)
    if source.startswith("mllp://"):
        from reticent.connectors.hl7 import Hl7Lines, check_port

        Hl7Lines(policy)
        check_port(source)
    elif source != "-" and not Path(source).is_fifo():  # who opens and closes a pipe takes its writer down
        with closing(Feed(source)) as feed:
            if feed.regular:
                _begin(policy, feed, form)
    publisher(policy, "stream", policy.stream.method, rng=Rng.fresh())


def _begin(policy: Policy, feed: Feed, form: str | None) -> None:
    head = feed.read() or b""
    kind = form or guess_form(feed.name, head)
    if kind == "hl7":
        from reticent.connectors.hl7 import Hl7Lines

        Hl7Lines(policy)
    elif kind == "csv" and head:
        CsvLines(policy).begin(head.partition(b"\n")[0])
