from __future__ import annotations

import pytest
from serving import InThread


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = InThread(tmp_path_factory.mktemp("service"), wrong_token_rate=1e9)
    yield running
    running.close()
