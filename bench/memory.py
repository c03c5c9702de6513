"""Memory that one waiting request holds in the data plane: a chat body of 1 KiB, on a connection of its own.

    python -m bench memory [--waiting 900]

Resident memory of `fairq serve` with that many waiting behind a busy slot, less what it has before, by request.
"""

import argparse
import socket
import sys
import time
from pathlib import Path

from bench.client import request
from bench.dataplane import fairq, running, upstream
from bench.peers import Peer

LIMIT = 8 * 1024


def resident(pid: int) -> int:
    """Bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def one_slot(port: int, upstream_port: int, folder: Path) -> list[str]:
    command = fairq(port, upstream_port, folder)
    command[command.index("--max-inflight") + 1] = "1"
    return command


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--waiting", type=int, default=900, help="at most the 1,000 that one tenant may have")
    given = parser.parse_args(arguments)
    body = request(True)
    with upstream(3600.0) as up, running(Peer("fairq", one_slot), up) as (port, pid):
        held = [_send(port, body) for _ in range(50)]  # the first ones warm up what is made once
        time.sleep(1)
        before = resident(pid)
        held += [_send(port, body) for _ in range(given.waiting)]
        time.sleep(3)
        each = (resident(pid) - before) / given.waiting
        for connection in held:
            connection.close()
    print(f"{len(body)} bytes on the wire hold {each:,.0f} bytes while they wait: {each / LIMIT:.2f} of the limit")


def _send(port: int, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(data)
    return connection


if __name__ == "__main__":
    main(sys.argv[1:])
