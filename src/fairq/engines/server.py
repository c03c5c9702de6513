"""A simulated LLM server with OpenAI's interface: stated timing, deterministic text, labelled simulated everywhere."""

from __future__ import annotations

import asyncio
import base64
import struct
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from fairq.core.wrong_value import WrongValue
from fairq.engines.batching import Engine, Sequence
from fairq.engines.clockwork import Clockwork
from fairq.engines.generation import Choice, Writer
from fairq.engines.metrics import EngineMetrics
from fairq.engines.openai import (
    DONE,
    BadRequest,
    ChatRequest,
    CompletionRequest,
    EmbeddingRequest,
    Generation,
    Shape,
    error,
    usage,
)
from fairq.engines.settings import EngineSettings
from fairq.engines.text import PrefixCache, vector
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.limits import Limits
from fairq.gateway.http1.server import Server

Request = TypeVar("Request", bound=Generation | EmbeddingRequest)

BODY_LIMIT = 64 * 1024 * 1024
LABEL = (b"x-fairq-simulated", b"1")
JSON = [(b"content-type", b"application/json"), LABEL]
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"), LABEL]
METRICS = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8"), LABEL]


class SimulatedServer:
    """One engine behind one port. `await start()` binds it; `url` says where."""

    def __init__(self, settings: EngineSettings) -> None:
        model = settings.engine_model()
        self.settings = settings
        self.engine = Engine(model)
        self.metrics = EngineMetrics(self.engine, settings.model)
        self._clockwork = Clockwork(self.engine, settings.speed)
        prefixes = PrefixCache(model.pool_tokens) if settings.prefix_cache else None
        self._writer = Writer(model, settings.seed, settings.median_output, prefixes)
        self._created = int(time.time())
        self._http = Server(
            self._answer, Limits(), lambda status, reason: (JSON, error(status, reason, "protocol_error"))
        )
        self._routes: dict[str, tuple[bytes, Callable[[Exchange], None]]] = {
            "/v1/chat/completions": (b"POST", lambda exchange: self._with_body(exchange, self._chat)),
            "/v1/completions": (b"POST", lambda exchange: self._with_body(exchange, self._complete)),
            "/v1/embeddings": (b"POST", lambda exchange: self._with_body(exchange, self._embed)),
            "/v1/models": (b"GET", self._models),
            "/health": (b"GET", lambda exchange: exchange.respond(200, JSON, b'{"status":"ok","simulated":true}')),
            "/metrics": (b"GET", lambda exchange: exchange.respond(200, METRICS, self.metrics.render())),
        }

    @property
    def url(self) -> str:
        return f"http://{self.settings.host}:{self._http.port}"

    async def start(self, port: int = 0) -> None:
        """Bind; port 0 is any free one. OSError when it is taken."""
        await self._http.start(self.settings.host, port)

    async def stop(self, grace: float = 0.0) -> None:
        """Stop accepting; running answers have `grace` seconds to end."""
        await self._http.drain(grace)
        self._clockwork.stop()

    def _answer(self, exchange: Exchange) -> None:
        method, handle = self._routes.get(exchange.path, (b"", None))
        if handle is None:
            exchange.respond(404, JSON, error(404, f"{exchange.path} is not served here", "unknown_path"))
        elif exchange.method not in (method, b"HEAD" if method == b"GET" else method):
            refusal = error(405, f"{exchange.path} takes {method.decode()}", "wrong_method")
            exchange.respond(405, [*JSON, (b"allow", method)], refusal)
        else:
            handle(exchange)

    def _with_body(self, exchange: Exchange, handle: Callable[[Exchange, bytes], None]) -> None:
        def on_body(body: bytes) -> None:
            try:
                handle(exchange, body)
            except BadRequest as bad:
                exchange.respond(bad.status, JSON, error(bad.status, str(bad), bad.code, bad.param))

        exchange.read_body(on_body, BODY_LIMIT)

    def _parse(self, body: bytes, kind: type[Request]) -> Request:
        try:
            request = msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            wrong = WrongValue.read(error, body)
            raise BadRequest(400, str(wrong), f"invalid_{wrong.wants}", wrong.key or None) from None
        except msgspec.DecodeError as error:
            raise BadRequest(400, f"the body is not valid JSON: {error}", "invalid_json") from None
        if request.model != self.settings.model:
            message = f"the model {request.model!r} does not exist; this server has {self.settings.model!r}"
            raise BadRequest(404, message, "model_not_found", "model")
        return request

    def _models(self, exchange: Exchange) -> None:
        card = {
            "id": self.settings.model,
            "object": "model",
            "created": self._created,
            "owned_by": "fairq-simulated",
            "max_model_len": self.engine.model.context_length,
        }
        exchange.respond(200, JSON, msgspec.json.encode({"object": "list", "data": [card]}))

    def _chat(self, exchange: Exchange, body: bytes) -> None:
        request = self._parse(body, ChatRequest)
        self._generate(exchange, request, request.prompts(), chat=True)

    def _complete(self, exchange: Exchange, body: bytes) -> None:
        request = self._parse(body, CompletionRequest)
        self._generate(exchange, request, request.prompts(), chat=False)

    def _generate(self, exchange: Exchange, request: Generation, prompts: list[bytes], chat: bool) -> None:
        choices = self._writer.choices(request, prompts)
        shape = Shape(chat, uuid.uuid4().hex, int(time.time()), self.settings.model)
        firsts = choices[:: request.n or 1]  # n choices share their prompt: it counts once
        prompt = sum(choice.sequence.prompt for choice in firsts)
        cached = sum(choice.sequence.cached for choice in firsts)
        if request.stream:
            on_token = self._streaming(exchange, request, shape, choices, prompt, cached)
        else:
            on_token = self._collecting(exchange, shape, choices, prompt, cached)
        for choice in choices:
            self._submit(choice, on_token)

        def gone() -> None:
            for choice in choices:
                if choice.sequence.produced < choice.sequence.output:
                    self._clockwork.cancel(choice.sequence)
                    self.metrics.finished("abort")

        exchange.on_gone = gone

    def _submit(self, choice: Choice, on_token: Callable[[Choice], None]) -> None:
        arrived = asyncio.get_running_loop().time()
        first = 0.0

        def advanced(sequence: Sequence) -> None:
            nonlocal first
            metrics = self.metrics
            now = asyncio.get_running_loop().time()
            metrics.generated.inc()
            if sequence.produced == 1:
                first = now
                metrics.ttft.observe(now - arrived)
                metrics.prompt.inc(sequence.prompt)
                metrics.queried.inc(sequence.prompt)
                metrics.hit.inc(sequence.cached)
            if sequence.produced == sequence.output:
                metrics.finished(choice.finish)
                if sequence.output > 1:
                    metrics.tpot.observe((now - first) / (sequence.output - 1))
            on_token(choice)

        self._clockwork.submit(choice.sequence, advanced)

    def _collecting(
        self, exchange: Exchange, shape: Shape, choices: list[Choice], prompt: int, cached: int
    ) -> Callable[[Choice], None]:
        """Answer in one piece when the last choice is complete."""
        left = len(choices)

        def on_token(choice: Choice) -> None:
            nonlocal left
            if choice.sequence.produced < choice.sequence.output:
                return
            left -= 1
            if not left:
                texts = [("".join(each.pieces), each.finish) for each in choices]
                completion = sum(each.sequence.produced for each in choices)
                exchange.respond(200, JSON, shape.whole(texts, usage(prompt, completion, cached)))

        return on_token

    def _streaming(
        self,
        exchange: Exchange,
        request: Generation,
        shape: Shape,
        choices: list[Choice],
        prompt: int,
        cached: int,
    ) -> Callable[[Choice], None]:
        """Answer with one event per token; the head goes out now."""
        options = request.stream_options
        ends_with_usage = bool(options and options.include_usage)
        always_usage = bool(ends_with_usage and options and options.continuous_usage_stats)
        left = len(choices)
        produced = 0

        def counts() -> dict[str, Any]:
            return usage(prompt, produced, cached)

        def on_token(choice: Choice) -> None:
            nonlocal left, produced
            produced += 1
            nth = choice.sequence.produced
            running = counts() if always_usage else None
            data = shape.event(choice.index, choice.pieces[nth - 1], None, running, first=nth == 1)
            if nth == choice.sequence.output:
                left -= 1
                data += shape.event(choice.index, None, choice.finish, running)
            if not left:
                data += (shape.usage_event(counts()) if ends_with_usage else b"") + DONE
            exchange.write(data)
            if not left:
                exchange.finish()

        exchange.start(200, EVENTS)
        return on_token

    def _embed(self, exchange: Exchange, body: bytes) -> None:
        request = self._parse(body, EmbeddingRequest)
        prompts = request.prompts()
        for prompt in prompts:
            self._writer.room(prompt)
        sequences = [self._writer.sequence(prompt, 1) for prompt in prompts]
        left = len(sequences)

        def on_token(sequence: Sequence) -> None:
            nonlocal left
            left -= 1
            self.metrics.prompt.inc(sequence.prompt)
            self.metrics.finished("stop")
            if not left:
                exchange.respond(200, JSON, self._embeddings(request, prompts, sequences))

        def gone() -> None:
            for sequence in sequences:
                self._clockwork.cancel(sequence)

        exchange.on_gone = gone
        for sequence in sequences:
            self._clockwork.submit(sequence, on_token)

    def _embeddings(self, request: EmbeddingRequest, prompts: list[bytes], sequences: list[Sequence]) -> bytes:
        data: list[dict[str, Any]] = []
        for index, prompt in enumerate(prompts):
            numbers = vector(prompt, request.dimensions or 64)
            packed: list[float] | str = numbers
            if request.encoding_format == "base64":
                packed = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
            data.append({"object": "embedding", "index": index, "embedding": packed})
        tokens = sum(sequence.prompt for sequence in sequences)
        counts = {"prompt_tokens": tokens, "total_tokens": tokens}
        return msgspec.json.encode({"object": "list", "model": self.settings.model, "data": data, "usage": counts})
