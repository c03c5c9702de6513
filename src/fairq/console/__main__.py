"""The console as a child of `fairq serve`. The admin token is in FAIRQ_CONSOLE_TOKEN, never on the command line."""

import argparse
import os
import sys
from pathlib import Path

from fairq.console.guard import Access
from fairq.console.live import LABELS
from fairq.console.server import Settings, run
from fairq.core.errors import FairqError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fairq.console")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--fd", type=int, help="an open listening socket, instead of binding --host and --port")
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("--tenants", type=int, default=LABELS)
    given = parser.parse_args()
    access = Access(given.host, tuple(given.allow_host), os.environ.pop("FAIRQ_CONSOLE_TOKEN", ""))
    try:
        run(
            Settings(
                path=given.socket,
                access=access,
                port=given.port,
                listen=given.fd,
                child=True,
                labels=given.tenants,
                ledger=given.ledger,
            )
        )
    except FairqError as error:
        sys.exit(f"fairq: console: {error}")


if __name__ == "__main__":
    main()
