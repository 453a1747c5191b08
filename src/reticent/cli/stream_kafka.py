"""`reticent stream kafka://broker/topic --to kafka://broker/topic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reticent.errors import PolicyError, needing

if TYPE_CHECKING:
    from reticent.policy import Policy


class Options(NamedTuple):
    """What of the command line is for Kafka."""

    group: str
    until_end: bool
    metrics: str | None
    despite_ledger: bool = False


def stream_kafka(
    route: tuple[str, str], policy: Policy, store: str, settings: Options, *, seed: int | None, json: bool
) -> None:
    """Works as one of a group, from topic to topic, until it is told to stop."""
    from reticent.cli.output import emit, figures, say
    from reticent.release import Counts
    from reticent.release.sentences import DESPITE
    from reticent.store import Store

    if not all(end.startswith("kafka://") for end in route):
        raise PolicyError(
            "A stream runs from topic to topic, or from file to file.",
            hint="Write SOURCE and --to both as kafka://broker:9092/topic.",
        )
    with needing("Kafka needs the extra 'kafka'", "kafka"):
        from reticent.connectors.kafka import Settings, run_kafka
    with Store.open(store) as private:
        group, until_end, metrics, despite = settings
        own = Settings(group=group, despite_ledger=despite)
        done = run_kafka(*route, policy, private, settings=own, until_end=until_end, seed=seed, metrics=metrics)
    say(f"{done.published:,} records released, {done.dead_letters:,} dead letters; {done.seconds:.1f} s.")
    if done.shared:
        say(f"Not covered: {DESPITE}.")
    if json:
        counts = Counts(done.published + done.dead_letters, done.published)
        emit(figures(counts, done.seconds, done.claims) | {"dead_letters": done.dead_letters})
