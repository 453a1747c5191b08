"""Shared by all tests: the profile of hypothesis, and a real PostgreSQL for tests that ask for one."""

import gc
import importlib.util
import os
import runpy
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Workers share the cores: threads of linear algebra that wait for each other by turning take ten times as long there.
# For this process where nothing is loaded yet, for the workers of pytest-xdist and for whatever the tests start.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# No wall-clock assertions: a busy machine must not fail a test.
settings.register_profile("reticent", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reticent")

# As on Windows: `RETICENT_WITHOUT_FCNTL=1 pytest ...` shows what cannot do without, in this process and in those it starts.
if os.environ.get("RETICENT_WITHOUT_FCNTL"):
    _PORTABLE = Path(__file__).parent / "portable"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PORTABLE), os.environ.get("PYTHONPATH")]))
    if "msvcrt" not in sys.modules:  # a worker of pytest-xdist has started with it
        runpy.run_path(str(_PORTABLE / "sitecustomize.py"))

# The script that atheris runs; without it there is nothing to import.
collect_ignore = ["portable", *([] if importlib.util.find_spec("atheris") else ["fuzz/guided.py"])]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests and all modules stay until the end: they are looked through for garbage once, not again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


# Each worker that meets a service starts one of its own, and a browser, a broker or a Spark has its price.
_SERVICES = {
    "tests/browser/": "browser",
    "tests/integration/test_kafka": "kafka",
    "tests/integration/test_identifier_variants": "spark",
    "tests/integration/test_spark": "spark",
}


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """As `--dist loadfile`, only that all files of a service go to one worker."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByService(LoadFileScheduling):
        def _split_scope(self, nodeid):
            services = (name for start, name in _SERVICES.items() if nodeid.startswith(start))
            return next(services, super()._split_scope(nodeid))

    return ByService(config, log)


_INSTALL = Path(__file__).parent.parent / "scripts" / "install-test-services"


def postgres_binaries() -> Path | None:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    return Path(found).parent if found else None


class Postgres:
    """A server of its own in a temporary directory, on a free loopback port, with a password."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        # The server refuses to run as root; Debian's package brings a user for it.
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        self._home = Path(tempfile.mkdtemp(prefix="reticent-pg-"))
        self._password = secrets.token_urlsafe(12)
        self._port = 0

    def start(self) -> None:
        (self._home / "password").write_text(self._password)
        if self._as:
            import pwd

            user = pwd.getpwnam("postgres")
            for path in (self._home, self._home / "password"):
                os.chown(path, user.pw_uid, user.pw_gid)
        login = ["--username=reticent", "--pwfile=password", "--auth=scram-sha-256"]
        self._run("initdb", "--pgdata=data", "--encoding=UTF8", "--locale=C", "--no-sync", *login)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        # Tests kill clients, never the machine: the server need not wait for the disk.
        options = f"-h 127.0.0.1 -p {self._port} -k '' -F"
        self._run("pg_ctl", "start", "--wait", "--pgdata=data", "--log=log", f"--options={options}")

    def stop(self) -> None:
        """End the server by the process number in its own directory, and remove the directory."""
        try:
            if (self._home / "data" / "postmaster.pid").exists():
                self._run("pg_ctl", "stop", "--wait", "--pgdata=data", "--mode=immediate")
        finally:
            shutil.rmtree(self._home)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://reticent:{self._password}@127.0.0.1:{self._port}/{database}"

    def _run(self, program: str, *arguments: str) -> None:
        # The server would keep a pipe open for as long as it runs, and the caller waiting for its end.
        with (self._home / "output").open("wb") as output:
            command = [self._binaries / program, *arguments]
            done = subprocess.run(
                command, cwd=self._home, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, **self._as
            )
        assert done.returncode == 0, (self._home / "output").read_text()


@pytest.fixture(scope="session")
def postgres_server():
    """A running PostgreSQL, started when the first test asks for it; missing under CI, it is a failure and no skip."""
    if postgres_binaries() is None:
        subprocess.run([_INSTALL], check=False)
    binaries = postgres_binaries()
    if binaries is None:
        told = "PostgreSQL is not installed; scripts/install-test-services says how"
        pytest.fail(told) if os.environ.get("CI") == "true" else pytest.skip(told)
    server = Postgres(binaries)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a fresh, empty database."""
    import psycopg

    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.url(name)
