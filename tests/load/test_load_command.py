"""`fairq load` as a person types it: a process against a server in this one."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import sys
from pathlib import Path

import pytest
from tests.cli.program import fairq
from tests.load.test_load_replay import scripted, together, trace

from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, Hang, answer, stream
from fairq.testing.upstream import ScriptedUpstream

COMMAND = "import sys; from fairq.cli import main; sys.argv[0:1] = ['fairq', 'load']; main()"


async def typed(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, "-c", COMMAND, *arguments, stdout=pipe, stderr=pipe)


@scripted
async def test_json_and_csv_tell_the_same_story(upstream: ScriptedUpstream, folder: Path) -> None:
    path = trace(folder, (0, "ann", 7, 3), (0.1, "bob", 5, 2), (0.2, "ann", 1, 1))
    upstream.default = lambda seen: stream(seen.json["max_tokens"], headers=[("x-fairq-queue-ms", "12")])
    rows = folder / "rows.csv"
    process = await typed(str(path), "--target", upstream.url, "--json", "--csv", str(rows), "--weight", "ann=2")
    out, _ = await process.communicate()
    assert process.returncode == 0
    report = json.loads(out)
    assert (report["planned"], report["sent"], report["tenants_by"], report["interrupted"]) == (3, 3, "trace", False)
    lines = {line["tenant"]: line for line in report["tenants"]}
    assert lines["ann"]["outcomes"] == {"completed": 2}
    assert (lines["ann"]["prompt_tokens"], lines["ann"]["completion_tokens"]) == (10, 4)
    assert lines["ann"]["service"] == (10 + 2 * 4) / 2
    assert lines["ann"]["wait"]["p50"] == 0.012
    assert report["fairness"]["backlog"] == "waits"
    written = list(csv.DictReader(rows.read_text().splitlines()))
    assert [row["tenant"] for row in written] == ["ann", "bob", "ann"]
    assert {row["outcome"] for row in written} == {"completed"}
    assert sum(int(row["completion_tokens"]) for row in written) == report["total"]["completion_tokens"] == 6


@scripted
async def test_tables_say_how_backlogged_was_known(upstream: ScriptedUpstream, folder: Path) -> None:
    path = trace(folder, *[(0, tenant, 5, 2) for tenant in ("ann", "bob") * 4])
    upstream.default = lambda seen: [Gate("g"), *stream(seen.json["max_tokens"])]
    process = await typed(str(path), "--target", upstream.url, "--speed", "2")
    await eventually(lambda: upstream.standing_at("g") == 8, within=20)
    await upstream.release("g", times=8)
    out, _ = await process.communicate()
    text = out.decode()
    assert process.returncode == 0
    assert "8 of 8 requests of mine.csv at 2 times its speed" in text
    assert "approximated by outstanding requests" in text
    assert "ann / bob" in text


@scripted
async def test_control_c_prints_what_was_measured_so_far(upstream: ScriptedUpstream, folder: Path) -> None:
    upstream.default = [Hang()]
    upstream.enqueue(stream(2))
    process = await typed(str(together(folder, 3)), "--target", upstream.url, "--json")
    await eventually(lambda: upstream.seen == 3 and upstream.active == 2, within=20)
    process.send_signal(signal.SIGINT)
    out, _ = await asyncio.wait_for(process.communicate(), 10)
    assert process.returncode == 130
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["total"]["outcomes"] == {"interrupted": 2, "completed": 1}


@scripted
async def test_a_run_without_one_completed_request_is_status_1(upstream: ScriptedUpstream, folder: Path) -> None:
    upstream.default = answer({"error": {"message": "no [room]"}}, 429)
    process = await typed(str(together(folder, 2)), "--target", upstream.url)
    out, _ = await process.communicate()
    assert process.returncode == 1
    assert "http-429 2" in out.decode()
    assert "http-429, for example: no [room]" in out.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "ftp://x"], "--target = 'ftp://x': must be an address like http://127.0.0.1:8080"),
        (["--target", "http://x:y"], "--target = 'http://x:y': must be an address like"),
        (["--target", "http://x/a b"], "--target = 'http://x/a b': must be an address like"),
        (["--key", "a\nb"], "authorization = '(not shown)': cannot be sent as a header"),
        (["--tenant-header", "x y"], "x y = 'ann': cannot be sent as a header"),
        (["--speed", "0"], "--speed = 0.0: must be more than 0"),
        (["--time-scale", "0.1", "--speed", "2"], "--time-scale = 0.1: is the inverse of --speed"),
        (["--api", "chats"], "--api = 'chats': must be chat or completions"),
        (["--weight", "ann"], "--weight = 'ann': must be TENANT=W"),
        (["--weight", "ann=-1"], "--weight ann = '-1': must be a number of at least 0"),
        (["--weight", "ann=0"], "--weight ann = '0': must be more than 0"),
        (["--weight", "eve=2"], "--weight = 'eve': no such tenant in the trace"),
        (["--alpha", "1/0"], "--alpha = '1/0': must be a number of at least 0, like 2, 0.5 or 1/3"),
        (["--tenants-by", "prefix:2"], "--tenants-by = 'prefix:2': mine.csv has no prefix blocks"),
        (["--keys", "FOLDER/none.csv"], "none.csv': cannot be read: "),
        (["--keys", "FOLDER/keys.csv"], "--keys = 'bob': this tenant of the trace has no key"),
        (["--keys", "FOLDER/twice.csv"], "twice.csv:3': must be lines of tenant,key with each tenant once"),
        (["--keys", "FOLDER/keys.json"], """keys.json': must be {"tenant": "key", ...}: """),
        (["--csv", "FOLDER/none/rows.csv"], "rows.csv': cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = trace(tmp_path, (0, "ann", 1, 1), (0, "bob", 1, 1))
    (tmp_path / "keys.csv").write_text("tenant,key\nann,k1\n")
    (tmp_path / "twice.csv").write_text("tenant,key\nann,k1\nann,k2\n")
    (tmp_path / "keys.json").write_text('{"ann": 1}')
    places = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    target = [] if "--target" in arguments else ["--target", "http://127.0.0.1:1"]
    said = fairq("load", path, *target, *places)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("fairq load: ")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_one_key_serves_tenants_that_the_file_leaves_out(tmp_path: Path) -> None:
    from fairq.load.plan import Identity, read_keys

    (tmp_path / "keys.json").write_text('{"ann": "k1"}')
    identity = Identity(keys=read_keys(tmp_path / "keys.json"), key="k2", header="X-Tenant")
    assert identity.headers("ann") == [(b"authorization", b"Bearer k1"), (b"x-tenant", b"ann")]
    assert identity.headers("bob") == [(b"authorization", b"Bearer k2"), (b"x-tenant", b"bob")]
