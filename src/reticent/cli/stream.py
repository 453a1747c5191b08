"""`reticent stream`: release each record as soon as it arrives."""

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
    help="CSV, NDJSON or HL7 v2 input: a file (or Parquet, a workbook, ...), - for standard input, mllp://host:port, or kafka://broker/topic.",
)
@options.policy_file
@click.option("--store", type=options.PATH_OR_URL, required=True, help="Store of the stream: a file or a URL.")
@click.option(
    "--to",
    type=options.PATH_OR_URL,
    default="-",
    help="Output for the released lines: a file, - for standard output, or kafka://broker/topic.",
)
@options.method
@click.option("--dead-letters", type=options.PATH, help="Also write unreadable lines to this file.")
@click.option("--format", help="Input format: csv, ndjson or hl7; default: guessed.")
@click.option(
    "--replayed/--no-replayed",
    default=False,
    help="Standard input starts from the beginning again: skip what an earlier run has read.",
)
@click.option("--final", is_flag=True, help="The input is complete: also read a last line without a line end.")
@click.option("--group", default="reticent", help="Kafka: consumer group. Workers of one group share the partitions.")
@click.option(
    "--until-end/--no-until-end", default=False, help="Kafka: stop when all current messages have been released."
)
@click.option("--metrics", help="Kafka: HOST:PORT for this worker's Prometheus metrics.")
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
    format: str | None,  # noqa: A002 - the option's name
    replayed: bool,
    final: bool,
    group: str,
    until_end: bool,
    metrics: str | None,
    allow_republication: bool,
    seed: int | None,
    json: bool,
) -> None:
    """Release each record as soon as it arrives.

    After a stop or a crash, run the same command again: it continues where it stopped.
    """
    from reticent.connectors.stream import FORMATS, Stream, check_ends, dead_letters_to, open_sink, open_source
    from reticent.connectors.stream.progress import Progress
    from reticent.connectors.stream.warmup import warm_up
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.store import Store

    rules = Policy.load(policy).with_method("stream", method)
    if files := warm_up(rules, source, store, format, seed=seed):
        say(f"The prior was made from the first records: {' and '.join(map(str, files))}.")
    check(rules)
    if format is not None and format not in FORMATS:
        raise PolicyError(f"--format: unknown format '{format}'.", hint="Use csv, ndjson or hl7.")
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
        records = stack.enter_context(closing(open_source(source, wake=_stop_on_signals(feed))))
        summary = feed.run(records, sink, format=format, replayed=replayed, final=final, progress=Progress())
    _say_summary(summary, reasons)
    if json:
        released = figures(summary.records, summary.seconds, summary.guarantee.claims, summary.metrics)
        emit(released | {"dead_letters": summary.dead_letters, "pending_bytes": summary.pending_bytes})


def _stop_on_signals(feed: Stream) -> int:
    """End the run in order on SIGTERM and SIGINT. Return a pipe that wakes a waiting source."""
    wake, signal_end = os.pipe()

    def stop(*_: object) -> None:
        feed.stop()
        os.write(signal_end, b"x")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return wake


def _dead_letter_counter(
    reasons: Counter[str], keep: Callable[[int, str, bytes], None] | None
) -> Callable[[int, str, bytes], None]:
    """Return a callback that counts the reasons of dead letters and passes the lines on."""

    def note(seq: int, reason: str, line: bytes) -> None:
        reasons[reason] += 1
        if keep is not None:
            keep(seq, reason, line)

    return note


def _say_summary(summary: Summary, reasons: Counter[str]) -> None:
    say(
        f"{summary.records.published:,} of {summary.records.input:,} records released, {summary.records.withheld:,} pending, "
        f"{summary.records.suppressed:,} suppressed, {summary.dead_letters:,} dead letters; this run {summary.seconds:.1f} s."
    )
    for reason, count in reasons.most_common(_MOST_REASONS):
        say(f"  {count:,} lines were rejected: {reason}.")
    if summary.pending_bytes:
        say(
            f"  The last line has no line end and was not read ({summary.pending_bytes:,} bytes). Use --final to read it."
        )


def _stream_kafka(
    route: tuple[str, str], policy: Policy, store: str, settings: Settings, *, json: bool, **how: Any
) -> None:
    """Run as one worker of a consumer group, from topic to topic, until stopped."""
    from reticent.connectors.kafka import run_kafka
    from reticent.release import RecordCounts
    from reticent.release.wording import REPUBLICATION
    from reticent.store import Store

    if not all(end.startswith("kafka://") for end in route):
        raise PolicyError(
            "Kafka must be both the source and the output of a stream.",
            hint="Give both SOURCE and --to as kafka://broker:9092/topic.",
        )
    with Store.open(store) as private:
        done = run_kafka(*route, policy, private, settings=settings, **how)
    say(f"{done.published:,} records released, {done.dead_letters:,} dead letters; {done.seconds:.1f} s.")
    if done.shared:
        say(f"Not covered: {REPUBLICATION}.")
    if json:
        counts = RecordCounts(done.published + done.dead_letters, done.published)
        emit(figures(counts, done.seconds, done.claims) | {"dead_letters": done.dead_letters})
