"""SimSo on the periodic tasks of the bench: prints the CPU seconds of the run, its jobs, and deadlines missed.
Run by the peer's interpreter.

python bench/sim/simso_periodic.py edf|rm HYPERPERIODS
"""

import gc
import sys
import time
import warnings

from tasks import HYPERPERIOD, PERIODIC

warnings.simplefilter("ignore")  # it imports modules that Python has deprecated
from simso.configuration import Configuration  # noqa: E402
from simso.core import Model  # noqa: E402


def main(policy, rounds):
    given = Configuration()
    given.duration = HYPERPERIOD * rounds * given.cycles_per_ms
    for number, (period, wcet) in enumerate(PERIODIC, 1):
        given.add_task(
            f"T{period:02}", number, period=period, activation_date=0, wcet=wcet, deadline=period, abort_on_miss=False
        )
    given.add_processor("CPU", 1)
    given.scheduler_info.clas = f"simso.schedulers.{policy.upper()}_mono"
    given.check_all()
    model = Model(given)
    gc.collect()
    start = time.process_time()
    model.run_model()
    spent = time.process_time() - start
    jobs = [job for task in model.results.tasks.values() for job in task.jobs if job.activation_date < given.duration]
    print(spent, len(jobs), sum(bool(job.exceeded_deadline) for job in jobs))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
