"""One run of sched-sim on the same requests, in its own environment: CPU seconds, and 0. LOAD TENANTS REQUESTS"""

import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from sched_sim.core.event_engine import Simulator
from sched_sim.core.request import Request
from sched_sim.hardware.presets import get_hardware_profile
from sched_sim.schedulers.factory import create_scheduler

spec = spec_from_file_location("requests_of_bench", Path(__file__).with_name("requests.py"))
assert spec is not None
assert spec.loader is not None
spec.loader.exec_module(module := module_from_spec(spec))


def main(load: int, tenants: int, count: int) -> None:
    hardware = get_hardware_profile("a100")
    scheduler = create_scheduler("chunked", hardware, token_budget=2_048, max_batch_size=256)
    simulator = Simulator(hardware, scheduler)
    requests = [
        Request(request_id=str(i), arrived_at=at, prompt_tokens=prompt, output_tokens=output)
        for i, (at, _, prompt, output) in enumerate(module.requests(load, tenants, count))
    ]
    start = time.process_time()
    simulator.submit_workload(requests)
    simulator.run()
    assert all(request.completed_at is not None for request in simulator.all_requests)
    print(time.process_time() - start, 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
