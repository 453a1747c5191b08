"""Messages over a real MLLP port: acknowledged when stored, released once, in order."""

import contextlib
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys

import pytest

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


def streaming(tmp_path, port, **settings):
    """A process that listens; `settings` go to subprocess."""
    command = [sys.executable, "-m", "reticent", "stream", f"mllp://127.0.0.1:{port}", "-p", tmp_path / "policy.yaml"]
    command += ["--store", tmp_path / "s.db", "--to", tmp_path / "out.ndjson"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **settings)


def released(tmp_path):
    lines = (tmp_path / "out.ndjson").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["type"] == "record"]


def test_a_message_whose_answer_was_lost_is_not_released_twice(tmp_path):
    """The sender never hears of what was stored: it is killed between commit and answer, as far as the sender can see."""
    write_adt(tmp_path, 10, 4)
    rows = feed.generate(30, 4).to_pylist()
    port = free_port()
    with streaming(tmp_path, port) as process, killed_on_failure(process):
        with connect(port, process) as link:
            ask(link, *(message(row, i) for i, row in enumerate(rows[:20])))
        process.kill()
    with streaming(tmp_path, port) as process, killed_on_failure(process):
        with connect(port, process) as link:
            texts = [message(row, i) for i, row in enumerate(rows)]
            answers = ask(link, texts[29], *texts)  # the last one twice, in one breath
            assert all(b"MSA|AA|" in answer for answer in answers)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, process.stderr.read()
    assert len(released(tmp_path)) == 30


def test_a_sender_that_never_reads_costs_only_itself(tmp_path):
    write_adt(tmp_path, 10, 4)
    rows = feed.generate(40, 4).to_pylist()
    port = free_port()
    with streaming(tmp_path, port) as process, killed_on_failure(process), contextlib.ExitStack() as stack:
        silent, other = (stack.enter_context(connect(port, process)) for _ in range(2))
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        silent.settimeout(1)
        flood = START + message(rows[0], 0).encode() + END
        with contextlib.suppress(TimeoutError):
            for _ in range(200):  # one message again and again: each is answered, and no answer is ever read
                silent.sendall(flood * 200)
        assert b"MSA|AA|1" in ask(other, message(rows[1], 1))[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(released(tmp_path)) == 2


def test_too_many_senders_do_not_end_it(tmp_path):
    write_adt(tmp_path, 10, 4)
    rows = feed.generate(10, 4).to_pylist()
    port = free_port()
    low = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))}
    with streaming(tmp_path, port, **low) as process, killed_on_failure(process), contextlib.ExitStack() as stack:
        links = [stack.enter_context(connect(port, process)) for _ in range(128)]
        assert b"MSA|AA|1" in ask(links[0], message(rows[1], 1))[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


KILLS = int(os.environ.get("RETICENT_KILLS", "5"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kills_at_any_moment_double_and_lose_no_message(tmp_path):
    """The sender sends on until it has heard of every message; what it did not hear of it sends again."""
    write_adt(tmp_path, 10, 4)
    rng = random.Random(19)
    rows = feed.generate(40 * (KILLS + 1), 4).to_pylist()
    texts = {str(i): message(row, i) for i, row in enumerate(rows)}
    port, unheard, killed = free_port(), list(texts), 0
    while unheard:
        with streaming(tmp_path, port) as process, killed_on_failure(process):
            last = killed == KILLS
            with connect(port, process) as link:
                part = unheard if last else unheard[:40]
                link.sendall(b"".join(START + texts[number].encode() + END for number in part))
                heard = b""
                link.settimeout(None if last else rng.random() * 0.15)
                with contextlib.suppress(TimeoutError):
                    while heard.count(END) < len(part):
                        heard += link.recv(1 << 16)
                if not last:
                    process.kill()
                    killed += 1
            unheard = [number for number in unheard if f"MSA|AA|{number}\r".encode() not in heard]
            if last:
                process.send_signal(signal.SIGTERM)
                assert process.wait() == 0, process.stderr.read()
    assert killed == KILLS
    assert len(released(tmp_path)) == len(rows)
