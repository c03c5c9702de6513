"""One run of Dynamo's Rust mocker on the same requests, in its own environment: CPU seconds, and 0.

Arguments: LOAD TENANTS REQUESTS

It knows no tenants and no policy but first come first served. Its own model of time (polynomial) makes iterations about
as long as the benchmark's does. It notes each request's times, as fairq does. Reading the file is not counted.
"""

import json
import sys
import tempfile
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from dynamo._core import _normalize_mocker_config, run_mocker_trace_replay

spec = spec_from_file_location("requests_of_bench", Path(__file__).with_name("requests.py"))
assert spec is not None
assert spec.loader is not None
spec.loader.exec_module(module := module_from_spec(spec))

BLOCK = 512  # tokens of a block of the trace file
RULES = {
    "backend": "vllm",
    "num_gpu_blocks": 25_000,
    "block_size": 16,
    "max_num_seqs": 256,
    "max_num_batched_tokens": 2_048,
    "enable_chunked_prefill": True,
    "enable_prefix_caching": False,
    "timing_model": {"type": "polynomial"},
}


def main(load: int, tenants: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, blocks = Path(folder) / "requests.jsonl", 0
        with path.open("w") as out:
            for at, _, prompt, output in module.requests(load, tenants, count):
                ids = list(range(blocks, blocks := blocks - (-prompt // BLOCK)))
                line = {"timestamp": at * 1000, "input_length": prompt, "output_length": output, "hash_ids": ids}
                out.write(json.dumps(line) + "\n")

        def replay(**given: Any) -> tuple[float, int]:
            """CPU seconds, and how many requests were served."""
            config, start = _normalize_mocker_config({"engine": RULES}), time.process_time()
            report = run_mocker_trace_replay([path], extra_engine_args=config, trace_block_size=BLOCK, **given)
            return time.process_time() - start, report.summary["completed_requests"]

        replay(max_sim_time_ms=1.0)
        reading, _ = replay(max_sim_time_ms=1.0)
        whole, served = replay(capture_per_request=True)
    assert served == count
    print(whole - reading, 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
