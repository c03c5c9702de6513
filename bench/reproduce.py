"""What others measured, beside what the simulated engine says of the same requests. Prints Markdown tables.

python -m bench reproduce
python -m bench reproduce --spread    how much the engine's speed, 1.2 % either way, moves the mean differences
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from fairq.measure.grid import Difference
from fairq.measure.service import ServiceOverTime
from fairq.sim.engine.calibrate import Agreement, Fit, compare, fit, timings
from fairq.sim.engine.cost import PRESETS
from fairq.sim.engine.prefix import hit_ratio
from fairq.sim.scenario import build
from fairq.traces import Trace

DATA = Path(__file__).parent.parent / "data"

ARENA = {  # the name in the paper's table: our policy, the authors' file
    "FCFS": ("fcfs", "FCFS__real"),
    "LCF": ("lcf", "LCF__real"),
    "VTC": ("vtc", "VTC__real"),
    "VTC(predict, ema)": ("vtc-predict:predictor=ema", "VTC_predict__real"),
    "VTC(oracle)": ("vtc-predict:predictor=oracle", "VTC_oracle__real"),
    "RPM(5)": ("rpm:limit=5", "LShare_rpm5__real"),
    "RPM(10)": ("rpm:limit=10", "LShare_rpm10__real"),
    "RPM(15)": ("rpm:limit=15", "LShare_rpm15__real"),
    "RPM(20)": ("rpm:limit=20", "LShare_rpm20__real"),
    "RPM(30)": ("rpm:limit=30", "LShare_rpm30__real"),
}
OVERLOAD = {  # and the seconds for which the authors sent requests
    "FCFS": ("fcfs", "FCFS__overload", 600),
    "VTC": ("vtc", "VTC__overload", 360),
    "VTC(±50 %)": ("vtc-predict:predictor=oracle50", "VTC_pred_50__overload", 360),
    "VTC(oracle)": ("vtc-predict:predictor=oracle", "VTC_oracle__overload", 360),
}
CARDS = {"RTX4090": "rtx4090-llama3.1-8b", "RTXPRO6000": "rtxpro6000-llama3.1-8b"}
PREFIXES = {
    "mooncake_conversation.jsonl.xz": 0.3664,
    "mooncake_synthetic.jsonl.xz": 0.6396,
    "sharegpt.jsonl": 0.0765,
}


class Told(NamedTuple):
    """difference in service units per second; throughput in tokens per second."""

    served: int
    difference: Difference
    throughput: float


def measured(name: str) -> Told:
    """What the authors of VTC measured on their A10G."""
    service, tokens, served, end = ServiceOverTime(), 0, 0, 0.0
    for request in Trace(DATA / "vtc" / f"{name}.csv"):
        told = request.measured
        if told is None or told.ttft is None or told.latency is None:
            continue
        at, lengths = request.arrival, (request.input_tokens, request.output_tokens)
        service.add(request.client, at, at + told.ttft, at + told.latency, *lengths)
        served, tokens, end = served + 1, tokens + sum(lengths), max(end, at + told.latency)
    difference = service.difference()
    assert difference is not None
    return Told(served, difference, tokens / end)


def simulated(policy: str, **given: object) -> Told:
    """The same of a simulated one: preset a10g-llama2-7b, as it is."""
    run = build({"layer": "engine", "policies": [policy], **given}).run(policy)
    return Told(sum(call.first is not None for call in run.calls), run.difference, run.throughput)


def arena(names: tuple[str, ...] = tuple(ARENA)) -> Iterator[tuple[str, Told, Told]]:
    """(name, measured, simulated) on the trace of 27 clients."""
    for name in names:
        policy, theirs = ARENA[name]
        yield name, measured(theirs), simulated(policy, trace=str(DATA / "vtc_real_trace.csv"))


def overload() -> Iterator[tuple[str, Told, Told]]:
    """The same with two clients that ask for more than there is."""
    for name, (policy, theirs, seconds) in OVERLOAD.items():
        yield name, measured(theirs), simulated(policy, workload=f"vtc-overload:duration={seconds}")


def spread() -> Iterator[tuple[str, float, list[float]]]:
    """(name, measured mean difference, the same simulated at 13 speeds, from 1.2 % faster to as much slower)"""
    cost = PRESETS["a10g-llama2-7b"].cost
    speeds = [{name: round(getattr(cost, name) * (1 + k * 0.002)) for name in "abcd"} for k in range(-6, 7)]
    arena_trace, two = {"trace": str(DATA / "vtc_real_trace.csv")}, {"workload": "vtc-overload"}
    rows = [(name, *ARENA[name], arena_trace) for name in list(ARENA)[:5]]
    rows.append(("VTC, two clients", *OVERLOAD["VTC"][:2], two))
    for name, policy, theirs, given in rows:
        ours = [simulated(policy, cost=speed, **given).difference.mean for speed in speeds]
        yield name, measured(theirs).difference.mean, ours


def cards() -> Iterator[tuple[str, Fit, Agreement]]:
    """vLLM's timings: calibrated on the first half, compared on all."""
    for card, preset in CARDS.items():
        known = timings(Trace(DATA / "vllm" / f"{card}_Llama-3.1-8B.csv"))
        limits = PRESETS[preset].limits
        found = fit(known[: len(known) // 2], limits)
        yield card, found, compare(known, found.cost, limits)


def hit_ratios() -> Iterator[tuple[str, float, float]]:
    """(trace, published, ours): the share of blocks that a prefix cache without limit finds."""
    for name, published in PREFIXES.items():
        yield name, published, hit_ratio([request.blocks for request in Trace(DATA / name)]) or 0.0


def main(arguments: list[str]) -> None:
    if arguments == ["--spread"]:
        _print_spread()
        return
    if arguments:
        sys.exit(f"bench reproduce: {' '.join(arguments)}: only --spread may follow")
    _differences("VTC's Chatbot Arena trace: 27 clients, 10 minutes, pool of 10,000 tokens", arena())
    _differences("Two clients that overload the engine, 1.5 and 3 requests per second", overload())
    print("\n### vLLM 0.19 with Llama-3.1-8B, calibrated on the first half of each file\n")
    print("| card | makespan, s | | mean TTFT, s | | mean TPOT, ms | | same place in the order of first tokens |")
    print("|---|---|---|---|---|---|---|---|")
    for card, _, told in cards():
        ms = (told.tpot[0] * 1e3, told.tpot[1] * 1e3)
        cells = " | ".join(_beside(*pair, digits=2) for pair in (told.makespan, told.ttft, ms))
        print(f"| {card} | {cells} | {told.same_order:.1%} |")
    print("\n### Blocks that a prefix cache without limit finds\n\n| trace | published | fairq |\n|---|---|---|")
    for name, published, ours in hit_ratios():
        print(f"| {name} | {published:.4f} | {ours:.4f} |")


def _print_spread() -> None:
    print("| policy | measured | simulated: mean | deviation | least | most |\n|---|---|---|---|---|---|")
    for name, theirs, ours in spread():
        told = (theirs, fmean(ours), stdev(ours), min(ours), max(ours))
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in told)} |")


def _differences(title: str, rows: Iterator[tuple[str, Told, Told]]) -> None:
    print(f"\n### {title}\n")
    print("Service difference and throughput: measured → simulated.\n")
    print("| policy | mean | | max | variance | accumulated | tokens/s | | served |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, theirs, ours in rows:
        one, other = theirs.difference, ours.difference
        cells = [
            name,
            _beside(other.mean, one.mean, digits=2),
            f"{one.max:.1f} → {other.max:.1f}",
            f"{one.variance:,.0f} → {other.variance:,.0f}",
            f"{one.accumulated:,.0f} → {other.accumulated:,.0f}",
            _beside(ours.throughput, theirs.throughput, digits=0),
            f"{theirs.served} → {ours.served}",
        ]
        print(f"| {' | '.join(cells)} |")


def _beside(ours: float, theirs: float, digits: int) -> str:
    return f"{theirs:.{digits}f} → {ours:.{digits}f} | {ours / theirs - 1:+.1%}"


if __name__ == "__main__":
    main([])
