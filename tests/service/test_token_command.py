"""`reticent token` and what the store keeps of a token; TLS by certificate options."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys

import httpx
import pytest

from reticent.cli import main
from reticent.service.audit_log import AuditLog
from reticent.service.tokens import Role, Tokens
from reticent.store import Store


def run(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert left.value.code == 0
    return capsys.readouterr().out


def test_create_list_revoke(tmp_path, capsys):
    store = str(tmp_path / "store.db")
    text = run(capsys, "token", "create", "ward 7", "--role", "feed", "--store", store).strip()
    entry = json.loads(run(capsys, "token", "list", "--store", store, "--json"))["tokens"][0]
    assert (entry["role"], entry["name"]) == ("feed", "ward 7")
    with Store.open(store) as kept:
        assert Tokens(kept).find(text).role is Role.FEED
        assert text.split("_", 2)[2].encode() not in (tmp_path / "store.db").read_bytes()
    run(capsys, "token", "revoke", entry["id"], "--store", store)
    with Store.open(store) as kept:
        assert Tokens(kept).find(text) is None


def test_a_scope_is_kept(tmp_path, capsys):
    store = str(tmp_path / "store.db")
    run(capsys, "token", "create", "w", "--scope", "stream:a", "--scope", "evolving:b*", "--store", store)
    entry = json.loads(run(capsys, "token", "list", "--store", store, "--json"))["tokens"][0]
    assert entry["scope"] == ["stream:a", "evolving:b*"]
    with Store.open(store) as kept:
        assert Tokens(kept).all()[0].scope == ("stream:a", "evolving:b*")
        assert [(entry["action"], entry["actor"]) for entry in AuditLog(kept).entries()] == [("grant", "operator")]


@pytest.mark.parametrize("arguments", [["--role", "king"], ["--days", "-1"], ["--scope", "king:x"]])
def test_what_makes_no_sense_is_refused(tmp_path, arguments):
    with pytest.raises(SystemExit) as left:
        main(["token", "create", "x", "--store", str(tmp_path / "s.db"), *arguments])
    assert left.value.code == 2


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_by_certificate(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    serve = [sys.executable, "-m", "reticent", "serve", "--port", "0", "--no-studio", "--store", str(tmp_path / "s.db")]
    process = subprocess.Popen(
        [*serve, "--certificate", str(certificate), "--key", str(key)], stderr=subprocess.PIPE, text=True
    )
    try:
        address = next(line for line in process.stderr if "serves at" in line).split()[-1]
        assert address.startswith("https://")
        trust = ssl.create_default_context(cafile=str(certificate))
        # The address is printed a moment before the socket listens.
        with httpx.Client(transport=httpx.HTTPTransport(verify=trust, retries=8)) as client:
            answer = client.get(f"{address}/health")
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
