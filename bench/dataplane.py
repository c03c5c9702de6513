"""CPU time of the data plane per request and per event of a stream, as ratios to nginx and beside two Rust routers.

    python -m bench dataplane [--rounds 5] [--requests 2000]

Everything of fairq is on: ledger with fsync, request log to a file, console folding the stream, keys and accounting.
nginx writes its access log. CPU is user and system time of the process under test and its threads, read before and
after; rounds are interleaved, so that a noisy neighbour meets all alike. Shown are the median of rounds, and the median
of the rounds' ratios to nginx.
"""

import argparse
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uvloop
from bench.client import Run
from bench.echo import CHUNKS
from bench.peers import Peer, free_port, peers, workplace


@dataclass(frozen=True)
class Mode:
    """gap: seconds between events of a stream. `per`: what the CPU time is divided by, for each request."""

    name: str
    stream: bool
    gap: float
    connections: int
    share: float
    per: int


MODES = [
    Mode("request", False, 0.0, 32, 1.0, 1),
    Mode("event, paced at 20 ms", True, 0.02, 64, 0.1, CHUNKS),
    Mode("event, as fast as it goes", True, 0.0, 16, 0.1, CHUNKS),
]


def fairq(port: int, upstream: int, folder: Path) -> list[str]:
    program = Path(sys.executable).parent / "fairq"
    url = f"http://127.0.0.1:{upstream}"
    options = ["--upstream", url, "--max-inflight", "64", "--port", str(port), "--console-port", "0"]
    return [str(program), "serve", *options, "--ledger", str(folder / "ledger")]


def cpu_of(pid: int) -> float:
    """Time on a CPU of a process and its threads, us; its children are left out (fairq's console, nginx's master).

    From the scheduler's own books: the user and system times of /proc/PID/stat are sampled by ticks.
    """
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000


def worker_of(process: subprocess.Popen[bytes], name: str) -> int:
    """The process that serves: nginx's is a child."""
    if name != "nginx":
        return process.pid
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text().split():
        time.sleep(0.01)
    return int(children.read_text().split()[0])


@contextmanager
def upstream(gap: float) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.echo", str(gap)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def running(peer: Peer, upstream_port: int) -> Iterator[tuple[int, int]]:
    """(port, pid of the process under test)."""
    port = free_port()
    with workplace() as folder, (Path(folder) / "out").open("wb") as out:
        process = subprocess.Popen(peer.command(port, upstream_port, Path(folder)), stdout=out, stderr=out, cwd=folder)
        try:
            deadline = time.monotonic() + 60
            while True:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{peer.name} did not start: {(Path(folder) / 'out').read_text()[-500:]}")
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield port, worker_of(process, peer.name)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def measure(port: int, pid: int, mode: Mode, requests: int) -> float:
    """us of CPU per request or event."""
    count = max(int(requests * mode.share), mode.connections)
    before = cpu_of(pid)
    uvloop.run(Run(port, mode.connections, count, mode.stream).go(120))
    return (cpu_of(pid) - before) / (count * mode.per)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench dataplane", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2000, help="per round; a tenth of it for streams")
    parser.add_argument("--only", action="append", help="names of those to measure")
    given = parser.parse_args(arguments)
    found, missing = peers()
    found.insert(0, Peer("fairq", fairq))
    if given.only:
        found = [peer for peer in found if peer.name in given.only]
    for reason in missing:
        print(f"left out: {reason}")
    print(f"{'CPU us per':28}" + "".join(f"{peer.name:>21}" for peer in found))
    for mode in MODES:
        print(f"{mode.name:28}" + _row(found, mode, given.rounds, given.requests), flush=True)


def _row(found: list[Peer], mode: Mode, rounds: int, requests: int) -> str:
    taken: dict[str, list[float]] = {peer.name: [] for peer in found}
    with ExitStack() as stack:
        port = stack.enter_context(upstream(mode.gap))
        places = {peer.name: stack.enter_context(running(peer, port)) for peer in found}
        for own, _ in places.values():
            _wait_until_served(own, mode)
        for turn in range(rounds + 1):
            for name, (own, pid) in places.items():
                us = measure(own, pid, mode, requests)
                if turn:  # the first round warms up
                    taken[name].append(us)
    return "".join(f"{_cell(values, taken.get('nginx')):>21}" for values in taken.values())


def _cell(values: list[float], nginx: list[float] | None) -> str:
    """12.3 (1.23x): us, and the ratio to nginx in the same round."""
    if nginx is None:
        return f"{median(values):.1f}"
    ratio = median(own / other for own, other in zip(values, nginx, strict=True))
    return f"{median(values):.1f} ({ratio:.2f}x)"


def _wait_until_served(port: int, mode: Mode) -> None:
    """Routers answer 503 until they have seen their worker."""
    deadline = time.monotonic() + 60
    while True:
        try:
            uvloop.run(Run(port, 1, 1, mode.stream).go(10))
            return
        except (TimeoutError, RuntimeError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
