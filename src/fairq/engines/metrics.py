"""The engine's numbers under the names that vLLM gives them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fairq.engines.batching import Engine

_LABELS = ("model_name", "engine")
_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_TPOT = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)


class EngineMetrics:
    """One registry per engine, so that several engines can live in one process. Times are those of the wall clock."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._registry = CollectorRegistry()
        values = (model, "0")

        def gauge(name: str, help_text: str) -> Gauge:
            return Gauge(name, help_text, _LABELS, registry=self._registry).labels(*values)

        def counter(name: str, help_text: str) -> Counter:
            return Counter(name, help_text, _LABELS, registry=self._registry).labels(*values)

        def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, help_text, _LABELS, registry=self._registry, buckets=buckets).labels(*values)

        running = gauge("vllm:num_requests_running", "Sequences in the batch (simulated).")
        running.set_function(lambda: len(engine.running))
        waiting = gauge("vllm:num_requests_waiting", "Sequences that wait for the batch (simulated).")
        waiting.set_function(lambda: len(engine.waiting))
        kv = gauge("vllm:kv_cache_usage_perc", "Share of the key-value pool that is reserved, 0 to 1 (simulated).")
        kv.set_function(lambda: engine.kv_usage)
        self.prompt = counter("vllm:prompt_tokens_total", "Prompt tokens of admitted requests, cached ones included.")
        self.generated = counter("vllm:generation_tokens_total", "Tokens generated.")
        self.queried = counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.")
        self.hit = counter("vllm:prefix_cache_hits_total", "Prompt tokens found there.")
        self.ttft = histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", _TTFT)
        self.tpot = histogram("vllm:time_per_output_token_seconds", "Mean time between a request's tokens.", _TPOT)
        self._success = Counter(
            "vllm:request_success_total",
            "Requests finished.",
            (*_LABELS, "finished_reason"),
            registry=self._registry,
        )
        self._values = values

    def finished(self, reason: str) -> None:
        """One sequence ended: "stop", "length", or "abort"."""
        self._success.labels(*self._values, reason).inc()

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self._registry)
