"""Nothing ambiguous is ever served, whichever way its bytes arrive."""

from __future__ import annotations

import re

import pytest
from tests.http1 import smuggling
from tests.http1.harness import (
    MemoryClient,
    Origin,
    Recorder,
    fetch,
    memory_server,
    nothing_left,
    on_asyncio,
)

from fairq.gateway.http1 import ClientLimits, Exchange, Upstream

ERROR = re.compile(rb"HTTP/1\.1 (400|417|505) [A-Za-z ]+\r\n(?:[a-z-]+: [^\r\n]*\r\n)*\r\n[^\r\n]*\n")


@pytest.mark.parametrize("name", smuggling.REQUESTS)
def test_ambiguous_request_is_refused_and_nothing_after_it_is_read(name: str) -> None:
    seen: list[str] = []

    def app(exchange: Exchange) -> None:
        exchange.read_body(lambda body: seen.append(exchange.path), 1000)

    data = smuggling.REQUESTS[name] + smuggling.NEXT
    for step in (len(data), 1, 7):
        server, clock = memory_server(app)
        client = MemoryClient(server)
        for start in range(0, len(data), step):
            client.send(data[start : start + step])
        assert ERROR.fullmatch(client.answered), client.answered
        assert b"connection: close\r\n" in client.answered
        assert client.closed
        assert seen == []
        clock.jump(3)
        client.transport.settle()
        assert client.transport.lost
        assert nothing_left(server)


@pytest.mark.parametrize("name", smuggling.RESPONSES)
def test_ambiguous_response_fails_and_its_connection_is_not_used_again(name: str) -> None:
    async def main() -> tuple[Recorder, int, int]:
        async with Origin([smuggling.RESPONSES[name] + b"x" * 10, None]) as origin:
            upstream = Upstream("127.0.0.1", origin.port, limits=ClientLimits(first_byte_seconds=5))
            recorder = await fetch(upstream, b"POST", b"/", b"body")
            idle = len(upstream._idle)
            await upstream.close()
            return recorder, idle, origin.connections

    recorder, idle, connections = on_asyncio(main())
    assert recorder.failure is not None
    assert recorder.failure.kind == "protocol"
    assert not recorder.ended
    assert idle == 0
    assert connections == 1
