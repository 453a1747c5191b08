"""`reticent stream`: a feed that cannot wait."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli import options
from reticent.cli.output import emit, figures, say
from reticent.errors import PolicyError, require_extra

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.connectors.kafka import Settings
    from reticent.connectors.stream import Stream
    from reticent.policy import Policy
    from reticent.publication.stream import Summary

_MOST_REASONS = 3


@click.command()
@click.argument(
    "source",
    type=options.PATH_OR_URL,
    help="CSV, NDJSON or HL7 v2: a file (or Parquet, a workbook, ...), - for standard input, mllp://host:port, or kafka://broker/topic.",
)
@options.policy_file
@click.option("--store", type=options.PATH_OR_URL, required=True, help="The private side: a file or a database URL.")
@click.option(
    "--to",
    type=options.PATH_OR_URL,
    default="-",
    help="Where released lines go: a file, - for standard output, or kafka://broker/topic.",
)
@options.method
@click.option("--dead-letters", type=options.PATH, help="Also write lines that cannot be read to this file.")
@click.option("--format", help="Of the input: csv, ndjson or hl7; guessed by default.")
@click.option(
    "--replayed/--no-replayed",
    default=False,
    help="Standard input starts from the beginning again: skip what was read before.",
)
@click.option("--final", is_flag=True, help="Nothing more will be written: a last line without an end counts as it is.")
@click.option("--group", default="reticent", help="Kafka: workers of one group share the partitions.")
@click.option(
    "--until-end/--no-until-end", default=False, help="Kafka: stop when all that is there now has been released."
)
@click.option("--metrics", help="Kafka: HOST:PORT where this worker tells its figures (Prometheus).")
@options.allow_republication
@options.seed
@options.json
def stream(
    source: str,
    policy: Path,
    store: str,
    to: str,
    method: str | None,
    dead_letters: Path | None,
    format: str | None,  # noqa: A002 - the word of the command line
    replayed: bool,
    final: bool,
    group: str,
    until_end: bool,
    metrics: str | None,
    allow_republication: bool,
    seed: int | None,
    json: bool,
) -> None:
    """Release every record the moment it arrives.

    Killed and started again, it goes on where it was.
    """
    from reticent.connectors.stream import FORMATS, Stream, check_ends, dead_letters_to, open_sink, open_source
    from reticent.connectors.stream.progress import Progress
    from reticent.connectors.stream.warmup import warm_up
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.store import Store

    rules = Policy.load(policy).with_method("stream", method)
    if files := warm_up(rules, source, store, format, seed=seed):
        say(f"The first records waited and made the prior: {' and '.join(map(str, files))}.")
    check(rules)
    if format is not None and format not in FORMATS:
        raise PolicyError(f"--format: '{format}' is not known here.", hint="Write csv, ndjson or hl7.")
    if source.startswith("kafka://") or to.startswith("kafka://"):
        with require_extra("Kafka needs the extra 'kafka'", "kafka"):
            from reticent.connectors.kafka import Settings
        own = Settings(group=group, allow_republication=allow_republication)
        _stream_kafka((source, to), rules, store, own, until_end=until_end, seed=seed, metrics=metrics, json=json)
        return
    if not Store.exists(store):
        check_ends(rules, source, to, format)
    with (
        closing(open_sink(to)) as sink,
        Stream(rules, store=store, seed=seed, allow_republication=allow_republication) as feed,
        ExitStack() as stack,
    ):
        reasons: Counter[str] = Counter()
        keep = stack.enter_context(dead_letters_to(dead_letters, feed.dead_letters())) if dead_letters else None
        feed.on_dead_letter = _dead_letter_counter(reasons, keep)
        start = stack.enter_context(closing(open_source(source, wake=_stop_on_signals(feed))))
        summary = feed.run(start, sink, format=format, replayed=replayed, final=final, progress=Progress())
    _say_summary(summary, reasons)
    if json:
        released = figures(summary.records, summary.seconds, summary.guarantee.claims, summary.metrics)
        emit(released | {"dead_letters": summary.dead_letters, "pending_bytes": summary.pending_bytes})


def _stop_on_signals(feed: Stream) -> int:
    """Ends the run in order on SIGTERM and SIGINT; gives a pipe that wakes whoever waits for input."""
    wake, say = os.pipe()

    def stop(*_: object) -> None:
        feed.stop()
        os.write(say, b"x")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return wake


def _dead_letter_counter(
    reasons: Counter[str], keep: Callable[[int, str, bytes], None] | None
) -> Callable[[int, str, bytes], None]:
    """Counts why lines could not be read, and hands them on."""

    def note(seq: int, reason: str, line: bytes) -> None:
        reasons[reason] += 1
        if keep is not None:
            keep(seq, reason, line)

    return note


def _say_summary(summary: Summary, reasons: Counter[str]) -> None:
    say(
        f"{summary.records.published:,} of {summary.records.input:,} records released, {summary.records.withheld:,} held, "
        f"{summary.records.suppressed:,} suppressed, {summary.dead_letters:,} dead letters; this run {summary.seconds:.1f} s."
    )
    for reason, count in reasons.most_common(_MOST_REASONS):
        say(f"  {count:,} lines were set aside: {reason}.")
    if summary.pending_bytes:
        say(f"  The last line has no end yet and waits ({summary.pending_bytes:,} bytes); --final takes it as it is.")


def _stream_kafka(
    route: tuple[str, str], policy: Policy, store: str, settings: Settings, *, json: bool, **how: Any
) -> None:
    """Works as one of a group, from topic to topic, until it is told to stop."""
    from reticent.connectors.kafka import run_kafka
    from reticent.release import RecordCounts
    from reticent.release.wording import REPUBLICATION
    from reticent.store import Store

    if not all(end.startswith("kafka://") for end in route):
        raise PolicyError(
            "A stream runs from topic to topic, or from file to file.",
            hint="Write SOURCE and --to both as kafka://broker:9092/topic.",
        )
    with Store.open(store) as private:
        done = run_kafka(*route, policy, private, settings=settings, **how)
    say(f"{done.published:,} records released, {done.dead_letters:,} dead letters; {done.seconds:.1f} s.")
    if done.shared:
        say(f"Not covered: {REPUBLICATION}.")
    if json:
        counts = RecordCounts(done.published + done.dead_letters, done.published)
        emit(figures(counts, done.seconds, done.claims) | {"dead_letters": done.dead_letters})
