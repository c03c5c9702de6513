"""Other people's HTTP/1.1 beside ours: aiohttp's server with either of its parsers, and h11.

Wherever another implementation agrees with itself on a request however it is cut into reads, ours agrees with it on
whether the request is served and on what it is; `STRICTER` names, with the reason, what we refuse on purpose.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator

import h11
import pytest
from aiohttp import http_parser, web, web_protocol
from tests.http1 import mutants, smuggling
from tests.http1.harness import MemoryClient, MemoryTransport, memory_server, on_asyncio
from tests.http1.test_http1_splits import CONTINUE, RESPONSES, receive

from fairq.gateway.http1 import Exchange

# A request was served with this method, target and body; or it was not.
Verdict = tuple[bytes, bytes, bytes] | None
Pieces = list[bytes]
ALIAS = "may be taken for a field that matters"
FORM = "a gateway serves its own paths only: no absolute form, tunnel, fragment or escape that is not one"
LINE = "one space, one target, one version: RFC 9112 §3"
HOST = "who is asked must be one host: RFC 9112 §3.2"
UPGRADE = "nothing but HTTP/1.1 is spoken"
CODING = "only `chunked`, once, and only in HTTP/1.1"

STRICTER = {
    "TE list": CODING,
    "TE list doubled": CODING,
    "TE leading comma": CODING,
    "TE in HTTP/1.0": CODING,
    "TE underscore alias": ALIAS,
    "TE mixed alias": ALIAS,
    "CL underscore alias": ALIAS,
    "tenant underscore alias": ALIAS,
    "tenant half alias": ALIAS,
    "authorization alias is not a field": ALIAS,
    "absolute form": FORM,
    "absolute form https": FORM,
    "authority form": FORM,
    "asterisk without OPTIONS": FORM,
    "relative target": FORM,
    "fragment": FORM,
    "escaped NUL in target": FORM,
    "non-ascii target": FORM,
    "broken escape": FORM,
    "cut escape": FORM,
    "CONNECT": FORM,
    "CONNECT with path": FORM,
    "TRACE": FORM,
    "two spaces after method": LINE,
    "two spaces after target": LINE,
    "lower-case method": LINE,
    "unknown method": LINE,
    "LF before the request": LINE,
    "HTTP/1.2": LINE,
    "HTTP/2.0": LINE,
    "HTTP/0.9 version": LINE,
    "HTTP/0.9 line": LINE,
    "RTSP": LINE,
    "ICE": LINE,
    "host with path": HOST,
    "host with user": HOST,
    "host list": HOST,
    "host with space": HOST,
    "two authorizations": "which of them is the client?",
    "two equal content-lengths": "one message, one length",
    "content-length list": "one message, one length",
    "upgrade to h2c": UPGRADE,
    "upgrade to websocket": UPGRADE,
    "upgrade without connection": UPGRADE,
    "http2-settings alone": UPGRADE,
    "upgrade with a body": UPGRADE,
    "expectation unknown": "417: RFC 9110 §10.1.1",
    "two expectations": "417: RFC 9110 §10.1.1",
    "trailer content-length": "framing fields do not belong in trailers: RFC 9110 §6.5.1",
    "trailer transfer-encoding": "framing fields do not belong in trailers: RFC 9110 §6.5.1",
    "extension with bare CR": "RFC 9112 §2.2",
    "extension with control": "RFC 9110 §5.5",
    "bare LF after the request line": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "bare LF after a field": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "bare LF everywhere": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "bare LF ends the head": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "obs-fold": "RFC 9112 §5.2",
    "obs-fold with tab": "RFC 9112 §5.2",
    "TE folded": "RFC 9112 §5.2",
    "CL.TE": "RFC 9112 §6.3: may be refused",
    "TE.CL": "RFC 9112 §6.3: may be refused",
    "control in a value": "RFC 9110 §5.5",
    "DEL in a value": "RFC 9110 §5.5",
    "chunk size with trailing space": "RFC 9112 §7.1",
    "end with bare LF": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "trailer with bare LF": "RFC 9112 §2.2 lets a server take a bare LF; not all do",
    "trailer obs-fold": "RFC 9112 §5.2",
    "HTTP/2 preface": UPGRADE,
    "CL.TE zero": "RFC 9112 §6.3: may be refused",
}


def ours(pieces: Pieces) -> Verdict:
    served: list[Verdict] = []

    def app(exchange: Exchange) -> None:
        def body(data: bytes) -> None:
            served.append((exchange.method, exchange.target, data))
            exchange.respond(200, [], b"")

        exchange.read_body(body, 10_000)

    client = MemoryClient(memory_server(app)[0])
    for piece in pieces:
        client.send(piece)
    return served[0] if served and client.answered.replace(CONTINUE, b"").startswith(b"HTTP/1.1 200") else None


class PlainTransport(MemoryTransport):
    def get_extra_info(self, name: str, default: object = None) -> object:
        return None


async def aiohttp_verdict(server: web.Server[web.Request], served: list[Verdict], pieces: Pieces) -> Verdict:
    served.clear()
    transport = PlainTransport()
    protocol = server()
    transport.protocol = protocol
    protocol.connection_made(transport)
    for piece in pieces:
        if not transport.closing:
            protocol.data_received(piece)
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    answered = transport.written.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    transport.closing = True
    protocol.connection_lost(None)
    for _ in range(3):
        await asyncio.sleep(0)
    return served[0] if served and answered[9:12] == b"200" else None


def of_aiohttp(parser: object, requests: list[list[Pieces]]) -> list[list[Verdict]]:
    """Verdicts on each request in each of its cuts."""
    served: list[Verdict] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        served.append((request.method.encode(), request.raw_path.encode("utf-8", "surrogateescape"), body))
        return web.Response()

    async def main() -> list[list[Verdict]]:
        server: web.Server[web.Request] = web.Server(handler, access_log=None)
        return [[await aiohttp_verdict(server, served, pieces) for pieces in cuts] for cuts in requests]

    original = web_protocol.HttpRequestParser
    logging.disable(logging.CRITICAL)
    try:
        web_protocol.HttpRequestParser = parser  # type: ignore[misc,assignment]
        return on_asyncio(main())
    finally:
        logging.disable(logging.NOTSET)
        web_protocol.HttpRequestParser = original  # type: ignore[misc]


def of_h11(pieces: Pieces) -> Verdict:
    connection = h11.Connection(h11.SERVER)
    request: h11.Request | None = None
    body = b""
    try:
        for piece in pieces:
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    assert request is not None
                    return request.method, request.target, body
                else:
                    break
    except h11.RemoteProtocolError:
        pass
    return None


def cuts(data: bytes) -> list[Pieces]:
    middle = len(data) // 2
    return [[data], [data[i : i + 1] for i in range(len(data))], [data[:middle], data[middle:]]]


PARSERS = {"aiohttp, llhttp": http_parser.HttpRequestParserC, "aiohttp, python": http_parser.HttpRequestParserPy}
REQUESTS = {**mutants.VALID, **smuggling.REQUESTS}


@pytest.fixture(scope="module")
def others() -> dict[str, dict[str, list[Verdict]]]:
    """What each other implementation says about each request, in each of three cuts."""
    said = {
        name: dict(zip(REQUESTS, of_aiohttp(parser, [cuts(data) for data in REQUESTS.values()]), strict=True))
        for name, parser in PARSERS.items()
    }
    said["h11"] = {name: [of_h11(pieces) for pieces in cuts(data)] for name, data in REQUESTS.items()}
    return said


@pytest.mark.parametrize("name", REQUESTS)
def test_ours_agrees_where_another_agrees_with_itself(name: str, others: dict[str, dict[str, list[Verdict]]]) -> None:
    mine = {ours(pieces) for pieces in cuts(REQUESTS[name])}
    assert len(mine) == 1
    agreed = [verdicts[name][0] for verdicts in others.values() if len(set(verdicts[name])) == 1]
    assert agreed, "nobody agrees with himself"
    for verdict in agreed:
        if verdict is None and name in mutants.VALID:
            continue  # somebody else refuses what the RFC allows
        assert mine == {verdict} or (mine == {None} and name in STRICTER), verdict


def test_what_we_refuse_on_purpose_somebody_serves(others: dict[str, dict[str, list[Verdict]]]) -> None:
    needless = [n for n in STRICTER if not any(verdict for said in others.values() for verdict in said[n])]
    assert needless == []


@pytest.mark.parametrize("name", mutants.VALID)
def test_valid_requests_are_served_by_all(name: str, others: dict[str, dict[str, list[Verdict]]]) -> None:
    assert ours([REQUESTS[name]]) is not None
    assert sum(said[name][0] is not None for said in others.values()) >= 2


def random_requests(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        yield mutants.mutant(rng)


def first_message(request: bytes) -> bytes:
    """The shortest beginning of `request` for which ours serves something."""
    served, unserved = len(request), 0
    while served - unserved > 1:
        middle = (served + unserved) // 2
        if ours([request[:middle]]) is None:
            unserved = middle
        else:
            served = middle
    return request[:served]


def test_a_mutant_we_serve_is_the_same_request_to_others() -> None:
    requests = list(random_requests(seed=11, count=1500))
    mine = [ours([request]) for request in requests]
    candidates = [(first_message(request), verdict) for request, verdict in zip(requests, mine, strict=True) if verdict]
    assert len(candidates) > 200
    pieces = [cuts(request)[:2] for request, _ in candidates]
    verdicts = [of_aiohttp(parser, pieces) for parser in PARSERS.values()]
    verdicts.append([[of_h11(cut) for cut in both] for both in pieces])
    for number, (request, verdict) in enumerate(candidates):
        agreed = [said[number][0] for said in verdicts if len(set(said[number])) == 1]
        assert verdict in agreed, (request, verdict, agreed)
        assert all(other in (verdict, None) for other in agreed), (request, verdict, agreed)


def h11_response(data: bytes) -> tuple[int, bytes] | None:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        connection.receive_data(data)
        connection.receive_data(b"")
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return status, body
            elif not isinstance(event, h11.InformationalResponse):
                return None
    except h11.RemoteProtocolError:
        return None


def test_a_mutated_response_we_take_is_the_same_response_to_h11() -> None:
    rng = random.Random(12)
    seeds = [response[0] for response in RESPONSES.values()] + list(smuggling.RESPONSES.values())
    taken = 0
    for _ in range(3000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((0, 1, 1, 2))):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(3)] = rng.choice(mutants.TOKENS)
        recorder, _ = receive([bytes(data)], then_close=True)
        if recorder.ended:
            taken += 1
            assert h11_response(bytes(data)) == (recorder.status, recorder.body), bytes(data)
    assert taken > 200
