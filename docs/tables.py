"""Runs as Markdown tables: what each policy did, in the layer's own numbers."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fairq.sim.engine.run import EngineRun
from fairq.sim.scenario import Run, Scenario

MOST = 16  # of a schedule's pieces in a row

Rows = list[list[str]]


def markdown(head: Sequence[str], rows: Rows) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"

    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])


def of_runs(scenario: Scenario, runs: Sequence[Run]) -> tuple[list[str], Rows]:
    return {"cpu": cpu, "link": link, "router": router, "cluster": cluster, "engine": engine}[scenario.layer](runs)


def some(parts: Sequence[str]) -> str:
    return " ".join(parts[:MOST]) + (" …" if len(parts) > MOST else "")


def short(value: Any) -> str:
    return "–" if value is None else f"{float(value):.4g}" if abs(value) < 10_000 else f"{float(value):,.0f}"


def cpu(runs: Sequence[Run]) -> tuple[list[str], Rows]:
    head = ["policy", "schedule", "turnaround", "waiting", "response", "switches", "missed"]
    rows = []
    for run in runs:
        told = run.as_json()
        pieces = [f"{p['task'] or p['state']} {p['start']}–{p['end']}" for p in told["timeline"]]
        means = [short(told["mean"][key]) for key in ("turnaround", "waiting", "response")]
        deadlock = f" **deadlock at {told['deadlock']['time']}**" if "deadlock" in told else ""
        timeline = " · ".join(pieces[:MOST]) + (" …" if len(pieces) > MOST else "")
        counts = [str(told["switches"]), str(told["measures"]["misses"])]
        rows.append([f"`{run.spec}`", timeline + deadlock, *means, *counts])
    return head, rows


def link(runs: Sequence[Run]) -> tuple[list[str], Rows]:
    rows = []
    for run in runs:
        told = run.as_json()
        left = [f"{one['flow']} {one['finish']}" for one in told["departures"]]
        delays = [f"{flow} {short(own['delay']['mean'])}" for flow, own in told["flows"].items() if own["delay"]]
        rows.append([f"`{run.spec}`", " · ".join(left[:MOST]) + (" …" if len(left) > MOST else ""), some(delays)])
    return ["policy", "packets, by when they have left", "mean delay"], rows


def router(runs: Sequence[Run]) -> tuple[list[str], Rows]:
    rows = []
    for run in runs:
        told = run.as_json()
        single = max(map(len, told["order"])) == 1
        order = "".join(told["order"][:60]) + ("…" if len(told["order"]) > 60 else "")
        together = next((one for one in told["fairness"] if len(one["tenants"]) > 1), None)
        service = ["–", "–", "–"]
        if together:
            given = [f"{tenant} {amount}" for tenant, amount in together["normalized_service"].items()]
            service = [f"{together['from']}–{together['to']}", some(given), short(together["jain"])]
        rows.append([f"`{run.spec}`", order if single else some(told["order"]), *service])
    return ["policy", "order", "first interval together", "normalized service in it", "Jain"], rows


def cluster(runs: Sequence[Run]) -> tuple[list[str], Rows]:
    rows = []
    for run in runs:
        told = run.as_json()
        picks = told["picks"]
        order = "".join(picks[:40]) + ("…" if len(picks) > 40 else "") if max(map(len, picks)) == 1 else some(picks)
        tasks, shares, used = (
            some([f"{name} {value}" for name, value in told[key].items()])
            for key in ("tasks", "dominant_share", "used")
        )
        rows.append([f"`{run.spec}`", order, tasks, shares, used])
    return ["policy", "picks", "tasks after the last pick", "dominant shares", "used"], rows


def engine(runs: Sequence[Run]) -> tuple[list[str], Rows]:
    rows = []
    for run in runs:
        assert isinstance(run, EngineRun)
        served = some([f"{name} {short(grown[-1])}" for name, grown in sorted(run.service.accumulated().items())])
        clients = run.clients().items()
        waits = some([f"{name} {short(own['ttft'] and own['ttft']['mean'])}" for name, own in clients])
        apart = run.difference
        gaps = [short(apart and apart.accumulated), short(apart and apart.mean)]
        hits = Fraction(sum(call.cached for call in run.calls), sum(call.prompt for call in run.calls) or 1)
        rows.append([f"`{run.spec}`", served, *gaps, waits, short(run.throughput), short(hits)])
    head = ["policy", "service while requests came", "largest gap", "service difference", "first token after (s)"]
    return [*head, "tokens/s", "of prompts cached"], rows
