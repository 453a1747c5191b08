"""The demonstration opens on loopback, and there only."""

from __future__ import annotations

import socket
from dataclasses import replace

import httpx
import pytest
from serving import InThread

from reticent.errors import PolicyError
from reticent.service import run as run_module
from reticent.service.run import run
from reticent.service.settings import Settings


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    running = InThread(tmp_path_factory.mktemp("demo"), demo=True)
    yield running
    running.close()


def test_loopback_needs_no_token(demo):
    assert httpx.get(f"{demo.root}/api/v1/streams").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "127.0.0.1.evil.example"},
    ],
)
def test_other_sites_cannot_use_the_visitor(demo, headers):
    assert httpx.get(f"{demo.root}/api/v1/streams", headers=headers).status_code == 401


def test_a_wrong_token_is_wrong_even_here(demo):
    assert httpx.get(f"{demo.root}/api/v1/streams", headers={"Authorization": "Bearer x"}).status_code == 401


def test_the_demonstration_refuses_other_addresses():
    with pytest.raises(PolicyError):
        run(Settings(store="", host="0.0.0.0", demo=True))  # noqa: S104 - that is the point


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104 - that is the point
def test_off_this_machine_it_speaks_tls_or_is_told_otherwise(tmp_path, host, monkeypatch, capsys):
    class StoppedError(Exception):
        pass

    def stop(*_):
        raise StoppedError

    monkeypatch.setattr(run_module, "_socket", lambda _: socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setattr(run_module.uvicorn.Server, "run", lambda *_, **__: stop())
    settings = Settings(store=str(tmp_path / "s.db"), host=host, studio=False)
    with pytest.raises(PolicyError, match="TLS"):
        run(settings)
    with pytest.raises(StoppedError):
        run(replace(settings, plain_http=True))
    assert "PLAIN HTTP: the network" in capsys.readouterr().err
