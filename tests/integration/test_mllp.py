"""Messages over a real MLLP port: acknowledged when stored, released once, in order."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

from reticent.datasets import feed
from reticent.datasets.adt import message, write_adt

START, END = b"\x0b", b"\x1c\r"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port, process):
    while True:
        assert process.poll() is None, process.stderr.read()
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            os.sched_yield()


@contextlib.contextmanager
def killed_on_failure(process):
    try:
        yield
    except BaseException:
        process.kill()
        raise


def ask(link, *texts):
    link.sendall(b"".join(START + text.encode() + END for text in texts))
    heard = b""
    while heard.count(END) < len(texts):
        part = link.recv(1 << 16)
        assert part
        heard += part
    return heard.split(END)[:-1]


def test_messages_are_acknowledged_and_released(tmp_path):
    write_adt(tmp_path, 10, 4)
    rows = feed.generate(60, 4).to_pylist()
    port = free_port()
    command = [sys.executable, "-m", "reticent", "stream", f"mllp://127.0.0.1:{port}", "-p", tmp_path / "policy.yaml"]
    command += ["--store", tmp_path / "s.db", "--to", tmp_path / "out.ndjson"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, killed_on_failure(process):
        with connect(port, process) as link, connect(port, process) as other:
            first = ask(link, *(message(row, i) for i, row in enumerate(rows[:59])))
            assert [b"MSA|AA|%d" % i in answer for i, answer in enumerate(first)] == [True] * 59
            assert b"MSA|AE|" in ask(other, "not a message")[0]
            assert b"MSA|AA|59" in ask(other, message(rows[59], 59))[0]
            # Acknowledged means stored and sent: both can be seen already.
            out = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait() == 0, said
    assert sum(line["type"] == "record" for line in out) == 60
    assert "60 of 60 records released" in said
    assert "1 dead letters" in said
    assert not any(row["patient_id"] in json.dumps(out) for row in rows)
