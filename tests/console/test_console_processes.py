"""`fairq serve` as it runs: two processes and their children, and what is left when one of them is killed."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from tests.ledger.recording import audit, replay

from fairq.testing.clock import eventually
from fairq.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
PATIENCE = 40.0  # seconds, on a busy machine
PROGRAM = "import sys; from fairq.cli import main; sys.exit(main())"


class Serving:
    def __init__(self, process: asyncio.subprocess.Process, greeting: str) -> None:
        self.process = process
        found = re.search(r"fairq serves (\S+)/v1", greeting), re.search(r"console: (\S+)", greeting)
        assert found[0], greeting
        assert found[1], greeting
        self.api, self.console = found[0][1], found[1][1]

    def children(self) -> dict[int, str]:
        """By process id: the command lines of those that this process started."""
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                if parent == self.process.pid:
                    found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it ended meanwhile
        return found

    def kill_console(self) -> int:
        [pid] = [pid for pid, command in self.children().items() if "fairq.console" in command]
        os.kill(pid, signal.SIGKILL)
        return pid


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@asynccontextmanager
async def serving(folder: Path, *arguments: str) -> AsyncIterator[Serving]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--console-port", "0", "--quiet"),
        *("--ledger", str(folder), *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        greeting = await asyncio.wait_for(process.stdout.readuntil(b"fairq audit"), PATIENCE)
        yield Serving(process, greeting.decode())
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), PATIENCE)


async def chat(client: httpx.AsyncClient, url: str) -> int:
    body = {"model": "simulated", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}
    return (await client.post(f"{url}/v1/chat/completions", json=body)).status_code


async def completed(client: httpx.AsyncClient, url: str) -> int:
    """As the console counts; -1 while it does not answer."""
    try:
        state = (await client.get(f"{url}/api/state")).json()
    except httpx.HTTPError:
        return -1
    return sum(pool["outcomes"].get("completed", 0) for pool in state["pools"])


async def until_completed(client: httpx.AsyncClient, url: str, least: int) -> int:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (found := await completed(client, url)) < least:
        assert asyncio.get_running_loop().time() < deadline, f"only {found} completed, not {least}"
        await asyncio.sleep(0.05)
    return found


@asynccontextmanager
async def console_alone(*arguments: str, **environ: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """(process, first line of its output)"""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "console", "--port", "0", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | environ,
    )
    try:
        assert process.stdout is not None
        yield process, (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE)


def test_a_console_alone_stays_when_there_is_no_data_plane_and_follows_one_that_comes(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            httpx.AsyncClient(timeout=PATIENCE) as client,
            console_alone("--ledger", str(tmp_path), FAIRQ_CONSOLE_TOKEN="secret") as (process, line),
        ):
            url = line.split()[-1]
            assert (await client.get(f"{url}/health")).json() == {"status": "ok", "connected": False}
            async with (
                ScriptedUpstream() as upstream,
                serving(tmp_path, "--upstream", upstream.url, "--max-inflight", "2") as serve,
            ):
                assert await chat(client, serve.api) == 200
                assert await until_completed(client, url, 1) == 1
                patch = {"url": f"{url}/api/tenants/anonymous", "json": {"weight": 3}}
                assert (await client.patch(**patch)).status_code == 401
                reply = await client.patch(**patch, headers={"authorization": "Bearer secret"})
                assert reply.json()["tenants"][0]["weight"] == "3"
            assert (await client.get(f"{url}/api/state")).json()["connected"] is False
            process.terminate()
            assert await asyncio.wait_for(process.wait(), PATIENCE) == 0

    asyncio.run(asyncio.wait_for(check(), 3 * PATIENCE))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ledger", "nowhere-at-all"), "--ledger"),
        (("--socket", "x.sock", "--host", "0.0.0.0"), "admin token"),
        (("--socket", "x.sock", "--host", "192.0.2.1"), "admin token"),
    ],
)
def test_a_console_that_cannot_start_says_why_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    async def check() -> None:
        async with console_alone(*arguments) as (process, _):
            assert await asyncio.wait_for(process.wait(), PATIENCE) == 2
            assert process.stderr is not None
            [error] = (await process.stderr.read()).decode().splitlines()
            assert error.startswith("fairq console: ")
            assert said in error

    asyncio.run(asyncio.wait_for(check(), PATIENCE))


def test_killing_the_console_is_noticed_by_no_request(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving(tmp_path, "--upstream", upstream.url, "--max-inflight", "4") as serve,
            httpx.AsyncClient(timeout=PATIENCE) as client,
        ):
            await until_completed(client, serve.console, 0)
            traffic = [asyncio.create_task(chat(client, serve.api)) for _ in range(60)]
            await eventually(lambda: upstream.seen > 5, "traffic", PATIENCE)
            killed = serve.kill_console()
            traffic += [asyncio.create_task(chat(client, serve.api)) for _ in range(60)]
            assert set(await asyncio.gather(*traffic)) == {200}
            assert await until_completed(client, serve.console, 120) == 120
            [back] = [pid for pid, command in serve.children().items() if "fairq.console" in command]
            assert back != killed
            state = (await client.get(f"{serve.console}/api/state")).json()
            assert state["pools"][0]["bounds"]["held"] is True
            assert state["pools"][0]["record"]["missed"] == 0

    asyncio.run(asyncio.wait_for(check(), 3 * PATIENCE))


def test_killing_the_data_plane_leaves_a_ledger_and_no_children(tmp_path: Path) -> None:
    async def check() -> None:
        async with httpx.AsyncClient(timeout=PATIENCE, limits=httpx.Limits(max_connections=200)) as client:
            async with serving(tmp_path) as serve:
                await until_completed(client, serve.console, 0)
                children = serve.children()
                assert len(children) == 2, children
                traffic = [asyncio.create_task(chat(client, serve.api)) for _ in range(100)]
                await until_completed(client, serve.console, 20)
                serve.process.kill()
                await asyncio.gather(*traffic, return_exceptions=True)
                await serve.process.wait()
                await eventually(lambda: not any(map(alive, children)), "the children end", PATIENCE)
            _check_ledger(tmp_path, restarts=0)
            async with serving(tmp_path) as serve:
                assert await chat(client, serve.api) == 200
                await until_completed(client, serve.console, 1)
            _check_ledger(tmp_path, restarts=1)
            assert await serve.process.wait() == 0

    asyncio.run(asyncio.wait_for(check(), 4 * PATIENCE))


def _check_ledger(folder: Path, restarts: int) -> None:
    report, result = audit(folder / "default"), replay(folder / "default")
    assert report.ok, [check for check in report.checks if not check.ok]
    assert result.identical, result.difference
    assert report.decisions >= 20
    assert (report.restarts, result.restarts) == (restarts, restarts)
    assert report.admitted == sum(report.outcomes.values()) - report.refused + report.living + report.cut_off
