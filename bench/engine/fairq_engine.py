"""One run of fairq's engine: prints its CPU seconds and the MiB it took. KIND LOAD TENANTS REQUESTS

jump, step   the simulation alone, of requests in memory
whole        requests read from a file, simulated by jumping, and the report made
report       the report alone
pictures     the report and its picture
"""

import csv
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path

from bench.engine.requests import requests

from fairq.plot import save
from fairq.policies import make
from fairq.sim.collector import collector_paused
from fairq.sim.engine.run import ENGINES, EngineRun, bind
from fairq.sim.engine.scenario import EngineScenario

RULES = {
    "cost": {"a": 6_000_000, "b": 55_000, "c": 60_000, "d": 12},  # of the order of Llama-3-8B on an A100
    "pool_tokens": 400_000,
    "block_tokens": 16,
    "prefill": "chunked",
    "max_sequences": 256,
    "step_tokens": 2_048,
}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work: Callable[[], object]) -> None:
    before, start = peak(), time.process_time()
    with collector_paused():
        work()
    print(time.process_time() - start, peak() - before)


def main(kind: str, load: int, tenants: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.csv"
        with path.open("w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(("arrival_s", "client", "input_tokens", "output_tokens"))
            rows.writerows(requests(load, tenants, count))
        scenario = EngineScenario.model_validate({"trace": path, **RULES})
        if kind == "whole":
            # What is imported on the way is not what a run costs.
            EngineRun(EngineScenario.model_validate({"requests": [{"client": "a", "prompt": 1, "output": 1}]}), "vtc")
            timed(lambda: EngineRun(scenario, "vtc").as_json())
        elif kind == "pictures":
            import_module("fairq.plot.engine")
            given = scenario.for_pictures()
            run = EngineRun(given, "vtc")
            timed(lambda: (run.as_json(), save(given, [run], Path(folder) / "it.png")))
        elif kind == "report":
            run = EngineRun(scenario, "vtc")
            timed(run.as_json)
        else:
            calls, _ = scenario.calls()
            engine = ENGINES[kind](policy := make("vtc"), scenario.limits(), scenario.cost_model())
            bind(policy, engine, dict.fromkeys((call.job.flow for call in calls), Fraction(1)), 0)
            engine.add(calls)
            timed(engine.run)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
