"""Valid messages, and messages made from them by a few random changes."""

from __future__ import annotations

import itertools
import random

from tests.http1 import smuggling

H = b"Host: h\r\n"
VALID: dict[str, bytes] = {
    "get": b"GET / HTTP/1.1\r\n" + H + b"\r\n",
    "delete": b"DELETE /x HTTP/1.1\r\n" + H + b"\r\n",
    "options": b"OPTIONS /x HTTP/1.1\r\n" + H + b"\r\n",
    "query": b"GET /v1/models?a=b&c=%20d HTTP/1.1\r\n" + H + b"\r\n",
    "no space after the colon": b"GET / HTTP/1.1\r\nHost:h\r\nX:y\r\n\r\n",
    "many spaces around a value": b"GET / HTTP/1.1\r\nHost: \t h \t\r\n\r\n",
    "empty value": b"GET / HTTP/1.1\r\n" + H + b"X:\r\nY: \r\n\r\n",
    "latin-1 value": b"GET / HTTP/1.1\r\n" + H + b"X: caf\xe9\r\n\r\n",
    "utf-8 value": b"GET / HTTP/1.1\r\n" + H + "X: 表\r\n\r\n".encode(),
    "odd name": b"GET / HTTP/1.1\r\n" + H + b"x!#$%&'*+-.^`|~: y\r\n\r\n",
    "host with port": b"GET / HTTP/1.1\r\nHost: example.com:8080\r\n\r\n",
    "host v6": b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
    "repeated ordinary field": b"GET / HTTP/1.1\r\n" + H + b"Accept: a\r\nAccept: b\r\n\r\n",
    "empty lines before": b"\r\n\r\nGET / HTTP/1.1\r\n" + H + b"\r\n",
    "length": b"POST / HTTP/1.1\r\n" + H + b"Content-Length: 3\r\n\r\nabc",
    "length zero": b"POST / HTTP/1.1\r\n" + H + b"Content-Length: 0\r\n\r\n",
    "length with zeros": b"POST / HTTP/1.1\r\n" + H + b"Content-Length: 003\r\n\r\nabc",
    "length with spaces": b"POST / HTTP/1.1\r\n" + H + b"Content-Length:  3 \r\n\r\nabc",
    "length in upper case": b"POST / HTTP/1.1\r\n" + H + b"CONTENT-LENGTH: 3\r\n\r\nabc",
    "get with a body": b"GET / HTTP/1.1\r\n" + H + b"Content-Length: 3\r\n\r\nabc",
    "body that looks like a request": b"POST / HTTP/1.1\r\n"
    + H
    + b"Content-Length: 36\r\n\r\n"
    + smuggling.NEXT
    + b"x",
    "chunks": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    "chunks in mixed case": b"POST / HTTP/1.1\r\n"
    + H
    + b"transfer-ENCODING: Chunked\r\n\r\nA\r\n012345678\n\r\n0\r\n\r\n",
    "chunk size with zeros": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n003\r\nabc\r\n00\r\n\r\n",
    "chunk extension": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
    "trailer": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    "no chunks": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk of line ends": b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
    "expect": b"POST / HTTP/1.1\r\n" + H + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "close": b"GET / HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n",
    "HTTP/1.0": b"GET / HTTP/1.0\r\n" + H + b"\r\n",
    "HTTP/1.0 without host": b"GET / HTTP/1.0\r\n\r\n",
    "HTTP/1.0 with a body": b"POST / HTTP/1.0\r\n" + H + b"Content-Length: 3\r\n\r\nabc",
}

TOKENS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"0",
    b"1",
    b"f",
    b"-",
    b"_",
    b"\xff",
    b"\r\n\r\n",
    b"chunked",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: x\r\n",
    b"HTTP/1.0",
    b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
]
GOOD = list(VALID.values())
SEEDS = [*GOOD, *smuggling.REQUESTS.values()]


def mutant(rng: random.Random) -> bytes:
    """A seed, or two in a row, with one to four changes."""
    data = bytearray(rng.choice(GOOD if rng.random() < 0.7 else SEEDS))
    if rng.random() < 0.3:
        data += rng.choice(SEEDS)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(data) + 1)
        action = rng.randrange(5)
        if action == 0:
            data[at:at] = rng.choice(TOKENS)
        elif action == 1:
            del data[at : at + rng.choice((1, 1, 2, 8))]
        elif action == 2 and at < len(data):
            data[at] = rng.randrange(256)
        elif action == 3:
            other = rng.choice(SEEDS)
            start = rng.randrange(len(other))
            data[at:at] = other[start : start + rng.randint(1, 40)]
        else:
            data[at : at + 2] = rng.choice(TOKENS)
    return bytes(data)


def pieces(rng: random.Random, data: bytes) -> list[bytes]:
    """`data` in up to six reads."""
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(6)))
    bounds = [0, *places, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds) if a < b]
