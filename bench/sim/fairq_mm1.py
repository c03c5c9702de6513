"""fairq's link as one queue with one server: prints the CPU seconds of the run, and the customers' time in the system.

python -m bench.sim.fairq_mm1 CUSTOMERS
"""

import gc
import sys
import time

from bench.sim.tasks import customers

from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario


def main(count: int) -> None:
    packets = [{"flow": "A", "arrival": at, "size": size} for at, size in customers(count)]
    scenario = LinkScenario.model_validate({"packets": packets})
    gc.collect()
    start = time.process_time()
    run = LinkRun(scenario, "fcfs")
    spent = time.process_time() - start
    print(spent, sum(one.finish - one.arrival for one in run.served))


if __name__ == "__main__":
    main(int(sys.argv[1]))
