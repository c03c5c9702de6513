"""What is told of requests in figures: how many, their tokens, how long they took."""

from typing import Any

from fairq.measure.latency import Summary, summary
from fairq.sim.engine.call import Call
from fairq.sim.engine.occupancy import Occupancy
from fairq.sim.engine.scenario import SECOND

OUTPUT = 2  # cost of an output token in input tokens, as in the VTC paper


def figures(calls: list[Call]) -> dict[str, Any]:
    """Seconds and tokens of these requests."""
    inputs = outputs = 0
    reasons: dict[str, int] = {}
    waits, gaps, responses = [], [], []
    for call in calls:
        reasons[call.reason] = reasons.get(call.reason, 0) + 1
        first, finish, produced = call.first, call.finish, call.produced
        if first is None or finish is None:
            continue
        inputs += call.prompt
        outputs += produced
        waits.append(first - call.arrival)
        responses.append(finish - call.arrival)
        if produced > 1:
            gaps.append((finish - first) / (produced - 1))
    return {
        "requests": len(calls),
        "served": len(waits),
        "reasons": reasons,
        "input_tokens": inputs,
        "output_tokens": outputs,
        "service": inputs + OUTPUT * outputs,
        "ttft": seconds(summary(waits)),
        "tpot": seconds(summary(gaps)),
        "response": seconds(summary(responses)),
    }


def occupied(occupancy: Occupancy) -> dict[str, Any]:
    """Shares, sequences, and gaps between tokens in seconds."""
    filled = occupancy.filled()
    return {
        "kv": {"mean": filled.kv_mean, "max": filled.kv_max},
        "batch": {"mean": filled.batch_mean, "max": filled.batch_max},
        "gap": seconds(filled.gaps),
    }


def seconds(told: Summary | None) -> dict[str, float] | None:
    if told is None:
        return None
    return {
        "mean": told.mean / SECOND,
        "p50": told.p50 / SECOND,
        "p90": told.p90 / SECOND,
        "p99": told.p99 / SECOND,
        "max": told.max / SECOND,
    }
