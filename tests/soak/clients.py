"""What clients do in a soak: mostly ask and read, and else everything that a client has ever been seen to do."""

import asyncio
import json
import random

from tests.gateway.wire import Wire, request

CHAT = "/v1/chat/completions"
MODELS = ["m", "n", "o"]

POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n"
NO_REQUEST = [
    b"GET\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    POST + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"transfer-encoding: x\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\nhost: a\n\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost : a\r\n\r\n",
    POST + b" b\r\n\r\n",
    b"\0" * 100,
    b"A" * 70_000,
]


class Clients:
    """Each `visit` is one connection. Requests carry the ids r0, r1, ... in the order in which they are made.

    statuses  how often each status was seen
    """

    def __init__(self, dice: random.Random, port: int, total: int) -> None:
        self._dice, self.port, self.total = dice, port, total
        self.made = 0
        self.statuses: dict[int, int] = {}

    async def work(self) -> None:
        """Visit until `total` requests have been made."""
        while self.made < self.total:
            async with asyncio.timeout(60):
                await self.visit()

    async def visit(self) -> None:
        dice = self._dice
        async with Wire(self.port) as wire:
            try:
                if dice.random() < 0.03:
                    wire.send(dice.choice(NO_REQUEST))
                    await wire.closed() if dice.random() < 0.5 else wire.reset()
                    return
                for _ in range(dice.randint(1, 8)):
                    if not await self._ask(wire):
                        return
            except (ConnectionError, asyncio.IncompleteReadError):
                return  # the gateway closed: after an error, or because an upstream broke off

    async def _ask(self, wire: Wire) -> bool:
        """True: the connection may carry another one."""
        dice = self._dice
        data = self._request()
        match dice.randrange(100):
            case n if n < 4:  # gives up at any moment
                await self._send(wire, data)
                await asyncio.sleep(dice.random() ** 3 * 0.1)
                if dice.random() < 0.5:
                    wire.reset()
                return False
            case n if n < 6:  # leaves in the middle of the response
                await self._send(wire, data)
                await wire.reader.read(dice.randint(1, 500))
                if dice.random() < 0.5:
                    wire.reset()
                return False
            case n if n < 8:  # leaves in the middle of the request
                wire.send(data[: dice.randrange(len(data))])
                await asyncio.sleep(dice.random() * 0.01)
                return False
            case n if n < 9:  # asks twice at once
                wire.send(data + self._request())
                await self._read(wire)
                return await self._read(wire)
            case _:
                await self._send(wire, data)
                return await self._read(wire)

    async def _send(self, wire: Wire, data: bytes) -> None:
        if self._dice.random() < 0.1:
            at = self._dice.randrange(len(data))
            wire.send(data[:at])
            await asyncio.sleep(0)
            data = data[at:]
        wire.send(data)

    async def _read(self, wire: Wire) -> bool:
        reply = await wire.reply()
        self.statuses[reply.status] = self.statuses.get(reply.status, 0) + 1
        return reply.whole and reply.header("connection") != "close"

    def _request(self) -> bytes:
        dice = self._dice
        headers = {"x_request_id": f"r{self.made}", "x_fairq_tenant": f"t{dice.randrange(12)}"}
        self.made += 1
        if dice.random() < 0.1:
            headers["x_fairq_max_queue_wait"] = dice.choice(["0", "0.01", "0.5", "soon"])
        text = "hello " * dice.randint(1, 50)
        body: dict[str, object] = {"model": dice.choice(MODELS), "messages": [{"role": "user", "content": text}]}
        if dice.random() < 0.6:
            body["stream"] = True
            if dice.random() < 0.3:
                body["stream_options"] = {"include_usage": True}
        if dice.random() < 0.5:
            body["max_tokens"] = dice.randint(1, 5000)
        whole = json.dumps(body).encode()
        match dice.randrange(60):
            case 0:
                whole = whole[:-5]  # no JSON
            case 1:
                whole = whole[:-1] + b', "model": "twice"}'
            case 2:
                whole = b"x" * 40_000  # beyond the limit of a body
            case 3:
                whole = bytes(dice.randrange(256) for _ in range(50))
        return request(CHAT, whole, **headers)
