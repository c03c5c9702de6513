"""A cheap OpenAI-like upstream for benchmarks, in a process of its own: `python -m bench.echo` prints its port.

It reads no JSON and checks nothing. A body with `"stream":true` gets CHUNKS events, `gap` seconds apart (0: at once),
and a usage event; any other POST one canned answer; every GET a health answer that lists the model.
"""

import asyncio
import sys
from typing import cast

import uvloop

CHUNKS = 50
ANSWER = (
    b'{"id":"chatcmpl-0123456789","object":"chat.completion","created":1700000000,"model":"mock","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"' + b"A queue serves who came first. " * 8 + b'"},"logprobs":null,'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":180,"completion_tokens":40,"total_tokens":220}}'
)
MODELS = b'{"object":"list","data":[{"id":"mock","object":"model","created":1700000000,"owned_by":"bench"}]}'
EVENT = (
    b'data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"mock",'
    b'"choices":[{"index":0,"delta":{"content":"%06d "},"logprobs":null,"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"mock",'
    b'"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}\n\n'
    b'data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"mock",'
    b'"choices":[],"usage":{"prompt_tokens":180,"completion_tokens":50,"total_tokens":230}}\n\ndata: [DONE]\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\nserver: bench\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
STREAM = b"HTTP/1.1 200 OK\r\nserver: bench\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


FRAMED = [chunk(EVENT % i) for i in range(CHUNKS)]
END = chunk(LAST) + b"0\r\n\r\n"


class Echo(asyncio.Protocol):
    gap = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.data = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (at := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:at].lower()
            where = head.find(b"content-length:")
            length = int(head[where + 15 :].split(b"\r\n", 1)[0]) if where >= 0 else 0
            if len(self.data) < at + 4 + length:
                return
            body, self.data = self.data[at + 4 : at + 4 + length], self.data[at + 4 + length :]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"get"):
            self.transport.write(HEAD % (len(MODELS), MODELS))
        elif b'"stream":true' not in body.replace(b" ", b""):
            self.transport.write(HEAD % (len(ANSWER), ANSWER))
        else:
            self.transport.write(STREAM)
            self.send(0)

    def send(self, index: int) -> None:
        if self.transport.is_closing():
            return
        if index == CHUNKS:
            self.transport.write(END)
            return
        self.transport.write(FRAMED[index])
        if self.gap:
            asyncio.get_running_loop().call_later(self.gap, self.send, index + 1)
        else:
            asyncio.get_running_loop().call_soon(self.send, index + 1)


async def main(gap: float) -> None:
    Echo.gap = gap
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent is gone


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1])))
