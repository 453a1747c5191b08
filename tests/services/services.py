"""Real services for the tests: a single-node Kafka and a local Spark, on free loopback ports, ended by their process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_STARTING = 120.0


def required() -> bool:
    """Whether a missing service is a failure: in continuous integration these tests must run."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def refuse(why: str) -> None:
    """Says why a test does not run; fails where it must run."""
    if required():
        pytest.fail(f"must run here, but: {why}")
    pytest.skip(why)


def artifacts(name: str) -> Path:
    """The folder of fetched jars; fetches them when they are not there."""
    if shutil.which("java") is None:
        refuse("no Java: install a Java 17 runtime")
    made = subprocess.run([str(ROOT / "scripts" / "install-kafka")], capture_output=True, text=True, check=False)
    if made.returncode:
        refuse(made.stderr.strip().splitlines()[-1] if made.stderr.strip() else "the artifacts cannot be had")
    return next(path for path in sorted((ROOT / ".cache" / name).iterdir()) if (path / ".complete").exists())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Broker:
    """One KRaft node that can be killed and started again on the same ports and logs.

    Args:
        folder: its logs and settings.
        flushing: write every batch to the disk at once, so that it survives the end of the machine too.
    """

    def __init__(self, folder: Path, *, flushing: bool = True) -> None:
        self.folder, self._flushing = folder, flushing
        self.port, self._controller = free_port(), free_port()
        self.behind, self.relayed = free_port(), free_port()
        """Where it listens for a relay, and where the clients of that relay are told to come."""
        self.address = f"127.0.0.1:{self.port}"
        self._jars = artifacts("kafka")
        self._process: subprocess.Popen[bytes] | None = None
        self._told = 0
        self._format()

    def start(self) -> None:
        with (self.folder / "broker.log").open("ab") as log:
            self._told = log.tell()
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._settings)), stdout=log, stderr=log, start_new_session=True
            )
        self._wait()

    def ill(self) -> bool:
        """Whether its group coordinator broke as it started, as happens to Kafka 4.1.1: no transaction ends then before it is started again."""
        with (self.folder / "broker.log").open("rb") as log:
            log.seek(self._told)
            return b"is out of sync with the underlying log" in log.read()

    @property
    def process(self) -> int | None:
        """The number of its process, while it runs."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """The end without warning: nothing is flushed, nobody is told."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        end = time.monotonic() + _STARTING
        while True:
            with contextlib.suppress(KafkaException):
                if admin.list_topics(timeout=2).brokers:
                    return
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "broker.log").read_text()[-4000:])

    def _java(self, *words: str) -> list[str]:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        small = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *small, logging, "-cp", f"{self._jars}/*", *words]

    def _format(self) -> None:
        self._settings = self.folder / "server.properties"
        one = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
        one += ("transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor")
        one += ("share.coordinator.state.topic.min.isr", "offsets.topic.num.partitions")
        one += ("transaction.state.log.num.partitions", "share.coordinator.state.topic.num.partitions")
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},RELAYED://127.0.0.1:{self.behind}"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": listeners.replace(str(self.behind), str(self.relayed)),
            "listener.security.protocol.map": ",".join(
                f"{listener}:PLAINTEXT" for listener in ("PLAINTEXT", "RELAYED", "CONTROLLER")
            ),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "logs"),
            "auto.create.topics.enable": "false",
            "group.min.session.timeout.ms": "1000",
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        } | dict.fromkeys(one, "1")
        if self._flushing:
            lines["log.flush.interval.messages"] = "1"
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        name = str(uuid.uuid4()).encode().hex()[:22]
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._settings)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """A running broker."""
    pytest.importorskip("confluent_kafka") if not required() else None
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


def spark_session(folder: Path, *, kafka: bool = False, cores: int = 2, memory: str = "1g", brief: bool = True):
    """A local Spark session that looks at nothing outside its folder."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = (
        SparkSession.builder.master(f"local[{cores},4]")  # a task may fail three times, as on a cluster
        .appName("reticent-tests")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.streaming.stateStore.providerClass", provider)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC" + (" -XX:TieredStopAtLevel=1" if brief else ""))
    )
    if kafka:
        jars = sorted(str(jar) for jar in artifacts("spark-kafka").glob("*.jar"))
        builder = builder.config("spark.jars", ",".join(jars))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def python_workers() -> list[int]:
    """The Python workers that Spark's daemon has forked below this process."""
    parents, daemons = {}, set()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number = int(place.name)
            parents[number] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if b"pyspark.daemon" in (place / "cmdline").read_bytes():
                daemons.add(number)

    def mine(number: int) -> bool:
        return number == os.getpid() or (number in parents and mine(parents[number]))

    return sorted(number for number in daemons if parents[number] in daemons and mine(number))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark session, with the Kafka source where it can be had."""
    if shutil.which("java") is None:
        refuse("no Java: install a Java 17 runtime")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        refuse("no pyspark: install the extra 'spark'")
    session = spark_session(tmp_path_factory.mktemp("spark"), kafka=True)
    yield session
    session.stop()
