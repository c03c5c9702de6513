"""fairq's CPU on the tasks of the bench: prints the CPU seconds of the run, and what the peer must find as well.

python -m bench.sim.fairq_cpu periodic edf|rm HYPERPERIODS    jobs, deadlines missed
python -m bench.sim.fairq_cpu eevdf TASKS                     when the last one ends
"""

import gc
import sys
import time
from typing import Any

from bench.sim.tasks import HYPERPERIOD, PERIODIC, SLICE, bursts

from fairq.sim.cpu.run import CpuRun
from fairq.sim.cpu.scenario import CpuScenario


def timed(policy: str, **scenario: Any) -> tuple[float, CpuRun]:
    given = CpuScenario.model_validate(scenario)
    gc.collect()
    start = time.process_time()
    run = CpuRun(given, policy)
    return time.process_time() - start, run


def periodic(policy: str, rounds: str) -> None:
    tasks = [{"id": f"T{period:02}", "period": period, "wcet": wcet} for period, wcet in PERIODIC]
    spent, run = timed(policy, tasks=tasks, horizon=HYPERPERIOD * int(rounds))
    print(spent, len(run.stories), sum(bool(one.missed) for one in run.stories))


def eevdf(tasks: str) -> None:
    given = [{"id": f"T{number:05}", "burst": burst} for number, burst in enumerate(bursts(int(tasks)))]
    spent, run = timed(f"eevdf:request={SLICE},quantum={SLICE}", tasks=given)
    print(spent, run.end)


if __name__ == "__main__":
    {"periodic": periodic, "eevdf": eevdf}[sys.argv[1]](*sys.argv[2:])
