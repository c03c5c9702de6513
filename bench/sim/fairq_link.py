"""fairq's link on the packets of the bench: prints the CPU seconds of the run, its packets' making included.

python -m bench.sim.fairq_link POLICY FLOWS PACKETS [record]
"""

import gc
import sys
import time

from bench.sim.packets import traffic, weight

from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario


def main(policy: str, flows: int, packets: int, record: str | None) -> None:
    scenario = LinkScenario.model_validate(
        {
            "flows": [{"id": f"{flow:04}", "weight": weight(flow)} for flow in range(flows)],
            "packets": [
                {"flow": f"{flow:04}", "arrival": at, "size": size} for at, size, flow in traffic(packets, flows)
            ],
        }
    )
    gc.collect()
    start = time.process_time()
    run = LinkRun(scenario, policy, record)
    spent = time.process_time() - start
    assert len(run.departures) == packets
    print(spent)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
