"""`fairq serve` before a port where nobody listens: its standard error says so."""

import json
import socket
from pathlib import Path

from tests.cli.test_signals import started


def test_serve_says_why_an_upstream_is_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    upstream = {"name": "gpu0", "url": f"http://127.0.0.1:{closed}", "max_inflight": 1, "health": {"failures": 1}}
    (tmp_path / "f.yaml").write_text(
        json.dumps({"listen": {"port": 0}, "console": {"enabled": False}, "pools": [{"upstreams": [upstream]}]})
    )
    with started("serve", "--config", tmp_path / "f.yaml", "--ledger", tmp_path / "ledger") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"upstream gpu0" in line:
                break
        process.terminate()
        assert process.wait(20) == 0
    assert line.startswith(b"fairq: pool default: upstream gpu0 leaves the rotation: probe: ")
    assert b"Connect" in line or b"refused" in line
