"""ns.py's link on the packets of the bench: prints the CPU seconds of the run, its packets' making
included. Run by the peer's interpreter.

python bench/sim/ns_link.py WFQServer|DRRServer FLOWS PACKETS
"""

import gc
import sys
import time
from importlib import import_module

import simpy
from ns.packet.packet import Packet
from packets import traffic, weight

MODULES = {"WFQServer": "ns.scheduler.wfq", "DRRServer": "ns.scheduler.drr"}


class Sink:
    def __init__(self):
        self.received = 0

    def put(self, packet):
        self.received += 1


def main(name, flows, packets):
    env = simpy.Environment()
    server = getattr(import_module(MODULES[name]), name)(env, 8.0, {flow: weight(flow) for flow in range(flows)})
    server.out = Sink()
    coming = traffic(packets, flows)

    def source():
        for number, (at, size, flow) in enumerate(coming):
            if at > env.now:
                yield env.timeout(at - env.now)
            server.put(Packet(env.now, size, number, flow_id=flow))

    env.process(source())
    gc.collect()
    start = time.process_time()
    env.run()
    spent = time.process_time() - start
    assert server.out.received == packets
    print(spent)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
