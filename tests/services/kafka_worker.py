"""A worker in a process of its own, to be killed: `kafka_worker.py SOURCE SINK FOLDER`."""

import logging
import sys
from pathlib import Path

import stream_feed

from reticent.connectors.kafka import Settings, run_kafka
from reticent.store import Store


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    source, sink, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    settings = Settings(batch=40, linger=0.02, snapshot_every=150, session=2.0)
    with Store.open(folder / "store.db") as store:
        run_kafka(source, sink, stream_feed.policy(folder), store, settings=settings)


if __name__ == "__main__":
    main()
