from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.llama.server import LlamaServer


@pytest.fixture(scope="module")
def llama(request: pytest.FixtureRequest) -> Iterator[LlamaServer]:
    """The real llama.cpp with a tiny model and 8 slots; parametrize it indirectly for another number."""
    server = LlamaServer(slots=getattr(request, "param", 8))
    try:
        yield server.wait_ready()
    finally:
        server.stop()
