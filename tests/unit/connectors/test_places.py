"""Files in object stores (S3, Google, Azure) and on a web server, all of the tests' own on loopback."""

import contextlib
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from reticent.connectors.files import read_table, write_table
from reticent.connectors.inputs import read_input, read_input_head
from reticent.errors import ConnectorError

ROWS = "age,sex\n31,f\n40,m\n"


class Handler(BaseHTTPRequestHandler):
    """As much of a web server, and of three object stores, as reading an object needs: HEAD, GET, ranges."""

    files: dict[str, bytes]
    asked: list[str]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        self.asked.append(self.headers.get("Authorization", ""))
        url = urlsplit(self.path)
        kind = {"Content-Type": "application/xml"}
        if "comp=list" in url.query:  # Azure: what lies under a name
            return self.reply(200, b"<EnumerationResults><Blobs/></EnumerationResults>", kind, body=body)
        # Google's names of an object, and Azure's, which begin with the account.
        path = url.path.replace("/download", "").replace("/storage/v1/b", "").replace("/o/", "/").removeprefix("/azure")
        data = self.files.get(path)
        if data is None:
            return self.reply(404, b"", {}, body=body)
        if path.startswith("/locked"):
            return self.reply(403, b"", {}, body=body)
        if url.path.startswith("/storage/v1/b"):
            bucket, name = path[1:].split("/")
            facts = {"bucket": bucket, "name": name, "size": str(len(data)), "updated": "2024-01-01T00:00:00.000Z"}
            facts |= {"kind": "storage#object", "generation": "1", "timeCreated": facts["updated"]}
            return self.reply(200, json.dumps(facts).encode(), {"Content-Type": "application/json"}, body=body)
        tag = {"ETag": f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"', "Accept-Ranges": "bytes"}
        tag |= {"x-ms-blob-type": "BlockBlob", "x-ms-creation-time": "Mon, 01 Jan 2024 00:00:00 GMT"}
        wanted = self.headers.get("Range", self.headers.get("x-ms-range")) if body else None
        if wanted is None:
            return self.reply(200, data, tag, body=body)
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        stop = min(int(end or len(data)), len(data) - 1)
        tag["Content-Range"] = f"bytes {start}-{stop}/{len(data)}"
        return self.reply(206, data[int(start) : stop + 1], tag, body=body)

    def reply(self, status, data, headers, *, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    pq = tmp_path / "t.parquet"
    write_table(pa.table({"age": ["31", "40"], "sex": ["f", "m"]}), pq)
    files = {"/bucket/t.csv": ROWS.encode(), "/bucket/t.parquet": pq.read_bytes(), "/locked/t.csv": b"a\n1\n"}
    handler = type("Bound", (Handler,), {"files": files, "asked": []})
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=web.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{web.server_port}",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{web.server_port}",
        "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=http;AccountName=azure;AccountKey=dGVzdHM=;"
        f"BlobEndpoint=http://127.0.0.1:{web.server_port}/azure;",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    import fsspec

    for scheme in ("s3", "gs", "abfs"):
        with contextlib.suppress(ImportError):
            fsspec.get_filesystem_class(scheme).clear_instance_cache()
    yield f"http://127.0.0.1:{web.server_port}", handler
    web.shutdown()
    web.server_close()
    thread.join()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestPlaces:
    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_an_object_store_and_a_web_server_give_the_rows_of_the_file(self, server, name):
        address, handler = server
        rows = {"age": ["31", "40"], "sex": ["f", "m"]}
        assert read_input(f"s3://bucket/{name}").to_pydict() == rows
        assert any("AWS4-HMAC-SHA256" in line for line in handler.asked), "s3:// signs what it asks"
        assert read_input(f"{address}/bucket/{name}?signature=abc").to_pydict() == rows
        assert read_input_head(f"{address}/bucket/{name}", 1).num_rows == 1

    @pytest.mark.parametrize("library", ["gcsfs", "adlfs"])
    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_the_stores_of_google_and_azure_do_likewise(self, server, library, name):
        pytest.importorskip(library)
        scheme, handler = {"gcsfs": "gs", "adlfs": "abfs"}[library], server[1]
        assert read_input(f"{scheme}://bucket/{name}").to_pydict() == {"age": ["31", "40"], "sex": ["f", "m"]}
        assert library == "gcsfs" or any("SharedKey azure" in line for line in handler.asked)
        with pytest.raises(ConnectorError, match="no such file"):
            read_input(f"{scheme}://bucket/none.csv")

    def test_what_is_missing_or_locked_is_said_without_signatures(self, server):
        address, _ = server
        with pytest.raises(ConnectorError, match="no such file"):
            read_table("s3://bucket/none.csv")
        for path in ("bucket/none.csv", "locked/t.csv"):
            with pytest.raises(ConnectorError) as caught:
                read_table(f"{address.replace('//', '//user:word@')}/{path}?signature=abc")
            assert "abc" not in str(caught.value)
            assert "word" not in str(caught.value)
