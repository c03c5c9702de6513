"""SimPy's M/M/1, as its documentation builds one: prints the CPU seconds of the run, and the customers' time in it.
Run by the peer's interpreter.

python bench/sim/simpy_mm1.py CUSTOMERS
"""

import gc
import sys
import time

import simpy
from tasks import customers


def main(count):
    env = simpy.Environment()
    server = simpy.Resource(env, capacity=1)
    spent_in_system = 0

    def customer(service):
        nonlocal spent_in_system
        came = env.now
        with server.request() as turn:
            yield turn
            yield env.timeout(service)
        spent_in_system += env.now - came

    def source(coming):
        for at, service in coming:
            if at > env.now:
                yield env.timeout(at - env.now)
            env.process(customer(service))

    env.process(source(customers(count)))
    gc.collect()
    start = time.process_time()
    env.run()
    print(time.process_time() - start, spent_in_system)


if __name__ == "__main__":
    main(int(sys.argv[1]))
