"""Simulated servers in a process of their own, and `fairq engine`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from fairq.core.errors import ConfigError, FairqError
from fairq.engines.process import start_engines
from fairq.engines.settings import EngineSettings
from fairq.testing.clock import eventually

COMMAND = [sys.executable, "-c", "import sys; from fairq.cli import main; sys.argv[0:1] = ['fairq', 'engine']; main()"]


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive its test."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat") as stat:  # nobody may have waited for it yet
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"


def test_servers_answer_in_another_process_and_end_with_stop() -> None:
    async def inside() -> None:
        engines = await start_engines(EngineSettings(count=2, speed=1000, model="tiny", max_sequences=3))
        try:
            assert engines.process.pid != os.getpid()
            assert (engines.model, engines.max_sequences) == ("tiny", 3)
            assert len(set(engines.urls)) == 2
            async with httpx.AsyncClient() as http:
                for url in engines.urls:
                    answer = await http.post(
                        f"{url}/v1/completions", json={"model": "tiny", "prompt": "a", "max_tokens": 2}
                    )
                    assert answer.json()["usage"]["completion_tokens"] == 2
        finally:
            await engines.stop()
        assert engines.process.returncode == 0
        await engines.stop()

    asyncio.run(inside())


def test_servers_end_when_their_parent_is_killed() -> None:
    parent = """
        import asyncio
        from fairq.engines.process import start_engines
        from fairq.engines.settings import EngineSettings

        async def main():
            engines = await start_engines(EngineSettings())
            print(engines.process.pid, flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
    """
    with started([sys.executable, "-c", textwrap.dedent(parent)]) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert not gone(child)
        process.kill()
    asyncio.run(eventually(lambda: gone(child), "the servers' process gone"))


def test_a_taken_port_is_one_line_and_no_servers(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FairqError, match="did not start"):
            asyncio.run(start_engines(EngineSettings(port=port)))
        said = capfd.readouterr().err
        assert str(port) in said
        assert "Traceback" not in said
        command = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=30)
    assert command.returncode == 2
    assert command.stderr.count("\n") == 1
    assert str(port) in command.stderr


def test_the_command_prints_its_addresses_and_ends_on_sigterm() -> None:
    options = ["--port", "0", "--count", "2", "--speed", "1000", "--max-sequences", "4"]
    with started([*COMMAND, *options]) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["simulated"] is True
        assert ready["max_sequences"] == 4
        assert [httpx.get(f"{url}/health").status_code for url in ready["engines"]] == [200, 200]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speed", "0"], "--speed = 0.0: must be above 0"),
        (["--preset", "a10g"], "did you mean a10g-llama2-7b"),
        (
            ["--context-length", "20000"],
            "--context-length = 20000: one such sequence must fit into",
        ),
    ],
)
def test_the_command_names_the_bad_value(options: list[str], said: str) -> None:
    command = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=30)
    assert command.returncode == 2
    assert said in command.stderr
    assert command.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("values", "key"),
    [({"count": 0}, "count"), ({"port": 65_535, "count": 2}, "port"), ({"median_output": 0}, "median_output")],
)
def test_settings_name_the_key(values: dict[str, int], key: str) -> None:
    with pytest.raises(ConfigError, match=f"engine.{key} = "):
        EngineSettings(**values)  # type: ignore[arg-type]
