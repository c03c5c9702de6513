"""Thousands of requests that are almost right: no crash, no leak, no answer that is not one."""

from __future__ import annotations

import asyncio
import random
import re

import pytest
from tests.http1 import mutants, smuggling
from tests.http1.harness import MemoryClient, Wire, memory_server, nothing_left, on_uvloop
from tests.http1.test_http1_splits import RESPONSES, receive

from fairq.gateway.http1 import Exchange, Limits, Server

RESPONSE = re.compile(
    rb"HTTP/1\.1 (\d\d\d) [A-Za-z ]*\r\n((?:[a-z-]+: [\x20-\x7e\x80-\xff]*\r\n)*)\r\n",
)


def answers(written: bytes) -> list[int]:
    """The statuses of a stream of responses; fails if it is anything else."""
    statuses = []
    at = 0
    while at < len(written):
        head = RESPONSE.match(written, at)
        assert head, written[at:]
        statuses.append(int(head[1]))
        length = re.search(rb"content-length: (\d+)\r\n", head[2])
        at = head.end() + (int(length[1]) if length else 0)
        assert length or statuses[-1] == 100
        assert at <= len(written)
    return statuses


class Ledger:
    """An application that answers in one of several ways, and accounts for every exchange."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.begun = 0
        self.ends: list[str] = []

    def __call__(self, exchange: Exchange) -> None:
        self.begun += 1
        exchange.on_done = lambda: self.ends.append("done")
        exchange.on_gone = lambda: self.ends.append("gone")
        exchange.on_refused = lambda status, reason: self.ends.append("refused")
        if self.rng.random() < 0.2:
            exchange.respond(401, [], b"no")
        elif exchange.method != b"HEAD":
            exchange.read_body(lambda body: exchange.respond(200, [], body), 8)
        else:
            exchange.respond(405, [], b"", close=True)


def run(seed: int, count: int) -> dict[int, int]:
    rng = random.Random(seed)
    app = Ledger(rng)
    server, clock = memory_server(app, Limits(head_bytes=400, header_lines=8, target_bytes=60, pipelined_bytes=200))
    seen: dict[int, int] = {}
    for _ in range(count):
        client = MemoryClient(server)
        for piece in mutants.pieces(rng, mutants.mutant(rng)):
            client.send(piece)
        if rng.random() < 0.5:
            client.leave()
        elif rng.random() < 0.5:
            client.send(b"\r\n\r\n" + mutants.VALID["get"])
        for _ in range(3):
            clock.jump(200)
        client.transport.settle()
        for status in answers(client.answered):
            seen[status] = seen.get(status, 0) + 1
        assert client.transport.lost
        assert app.begun == len(app.ends)
    assert nothing_left(server)
    assert not any(clock.deadlines._buckets.values())
    return seen


def test_mutated_requests_never_break_the_server() -> None:
    seen = run(seed=1, count=10_000)
    assert set(seen) <= {100, 200, 400, 401, 405, 408, 413, 414, 417, 431, 505}
    assert min(seen[200], seen[400], seen[401], seen[413]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_mutated_requests_never_break_the_server(seed: int) -> None:
    assert run(seed, 30_000)


def test_mutated_responses_never_break_the_client() -> None:
    rng = random.Random(3)
    seeds = [response[0] for response in RESPONSES.values()] + list(smuggling.RESPONSES.values())
    kinds: dict[str, int] = {}
    for _ in range(4000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            if rng.random() < 0.5:
                data[at : at + rng.randrange(3)] = rng.choice(mutants.TOKENS)
            elif at < len(data):
                data[at] = rng.randrange(256)
        recorder, kept = receive(mutants.pieces(rng, bytes(data)), then_close=True)
        assert recorder.ended != (recorder.failure is not None)
        assert recorder.events[-1] in ("end", "fail")
        assert recorder.events.count("head") <= 1
        assert kept <= recorder.ended
        kind = recorder.failure.kind if recorder.failure else "end"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert set(kinds) == {"end", "reset", "protocol"}
    assert min(kinds.values()) > 100


def test_mutated_requests_over_sockets_leave_nothing() -> None:
    async def attack(port: int, rng: random.Random) -> None:
        wire = await Wire.open(port)
        try:
            for piece in mutants.pieces(rng, mutants.mutant(rng)):
                wire.send(piece)
                await asyncio.sleep(0)
            if rng.random() < 0.3:
                wire.writer.transport.abort()
            elif not wire.writer.transport.is_closing():
                wire.writer.write_eof()
            answers(await wire.rest())
        finally:
            await wire.close()

    async def main() -> None:
        problems: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        rng = random.Random(4)
        app = Ledger(rng)
        server = Server(app, Limits(linger_seconds=0.1))
        await server.start("127.0.0.1", 0)
        for _ in range(30):
            await asyncio.gather(*(attack(server.port, rng) for _ in range(20)))
        await server.drain(1)
        assert nothing_left(server)
        assert app.begun == len(app.ends) > 50
        assert problems == []

    on_uvloop(main())
