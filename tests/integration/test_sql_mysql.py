"""MariaDB for real: rows of one SELECT in a read-only transaction."""

import datetime as dt
import getpass
import os
import shutil
import subprocess
import time

import pytest

from reticent.connectors.inputs import read_input
from reticent.errors import ConnectorError, PolicyError

SERVER = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
pytestmark = pytest.mark.skipif(SERVER is None and os.environ.get("CI") != "true", reason="no MariaDB server here")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pymysql = pytest.importorskip("pymysql")
    folder = tmp_path_factory.mktemp("mariadb")
    data, socket, user = folder / "data", folder / "s", getpass.getuser()
    subprocess.run(
        ["mariadb-install-db", f"--datadir={data}", f"--user={user}", "--auth-root-authentication-method=normal"],
        check=True,
        capture_output=True,
    )
    options = [f"--datadir={data}", f"--user={user}", f"--socket={socket}", "--skip-networking", "--no-defaults"]
    process = subprocess.Popen(
        [SERVER, options[-1], *options[:-1]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(300):
        if socket.exists():
            break
        time.sleep(0.1)
    link = pymysql.connect(unix_socket=str(socket), user="root")
    with link.cursor() as cursor:
        cursor.execute("create database hospital")
        cursor.execute("create table hospital.visits (age int, sex text, seen date)")
        cursor.execute("insert into hospital.visits values (31, 'f', '2024-01-05'), (40, 'm', null)")
    link.commit()
    link.close()
    yield f"mysql+pymysql://root@localhost/hospital?unix_socket={socket}"
    process.terminate()
    process.wait(30)


def test_tables_and_queries_are_read(server):
    assert read_input(f"{server}&table=visits").to_pydict() == {
        "age": [31, 40],
        "sex": ["f", "m"],
        "seen": [dt.date(2024, 1, 5), None],
    }
    query = "SELECT age FROM visits WHERE sex LIKE 'f%25'"
    assert read_input(f"{server}&query={query}").to_pydict() == {"age": [31]}


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM visits",
        "WITH x AS (SELECT 1) DELETE FROM visits",
        "SELECT 1; DELETE FROM visits",
        "SELECT age FROM visits INTO OUTFILE '/tmp/visits.txt'",
        "SELECT age FROM visits INTO/**/OUTFILE '/tmp/visits.txt'",
        "SELECT * FROM none",
    ],
)
def test_only_a_select_passes(server, query):
    with pytest.raises((ConnectorError, PolicyError)) as caught:
        read_input(f"{server}&query={query}")
    assert "socket" not in str(caught.value)
    assert read_input(f"{server}&table=visits").num_rows == 2
