"""cpusched's EEVDF on the tasks of the bench: prints the CPU seconds of the run, and when the last task ends.
Run by the peer's interpreter.

python bench/sim/cpusched_eevdf.py TASKS
"""

import gc
import sys
import time

from cpusched import EEVDF, Process
from tasks import SLICE, bursts


def main(tasks):
    scheduler = EEVDF([Process(f"T{number:05}", 0, burst) for number, burst in enumerate(bursts(tasks))], quantum=SLICE)
    gc.collect()
    start = time.process_time()
    result = scheduler.run()
    print(time.process_time() - start, max(entry.end for entry in result.gantt))


if __name__ == "__main__":
    main(int(sys.argv[1]))
