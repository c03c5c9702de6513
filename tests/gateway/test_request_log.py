"""The request log: one line each, for people or machines, whatever the reader does."""

import json
import os
import re

from fairq.core.commands import Ended
from fairq.core.cost import Usage
from fairq.core.events import Refused
from fairq.core.lifecycle import Outcome
from fairq.gateway.log import Form, RequestLog

ENDED = Ended(
    seq=9,
    time=0,
    id="r-1",
    tenant="ann",
    outcome=Outcome.COMPLETED,
    upstream="gpu0",
    wait=2_999_999,
    ttft=31_000_000,
    total=480_500_000,
    charge=140,
    usage=Usage(12, 64),
    status=200,
)
REFUSED = Refused(seq=10, time=0, id="r-2", tenant="", outcome=Outcome.REFUSED_UNAUTHORIZED, status=401)


def written(form: Form, *records: Ended | Refused, **failures: str) -> list[str]:
    reader, writer = os.pipe()
    log = RequestLog(form, writer)
    for record in records:
        log("default", record, failures.get(record.id, ""))
    log.close()
    os.close(writer)
    with open(reader) as lines:
        return lines.read().splitlines()


def test_people_read_one_line_per_request() -> None:
    ended, refused = written("text", ENDED, REFUSED)
    said = "ann completed 200 wait=2ms ttft=31ms total=480ms 12+64 tokens charge=140 gpu0 r-1"
    assert re.fullmatch(r"\d\d:\d\d:\d\d " + re.escape(said), ended)
    assert re.fullmatch(r"\d\d:\d\d:\d\d - refused-unauthorized 401 r-2", refused)


def test_machines_read_the_ledgers_record() -> None:
    ended, refused = map(json.loads, written("json", ENDED, REFUSED))
    assert (ended["id"], ended["pool"], ended["usage"]["completion"]) == ("r-1", "default", 64)
    assert refused["outcome"] == "refused-unauthorized"
    assert ended["wall"] > 1_700_000_000_000_000_000


def test_a_failed_attempt_says_where_and_why() -> None:
    why = "gpu1: answered 503"
    [line] = written("text", ENDED, **{ENDED.id: why})
    assert line.endswith(" gpu0 r-1 (gpu1: answered 503)")
    ended, refused = map(json.loads, written("json", ENDED, REFUSED, **{ENDED.id: why}))
    assert ended["failure"] == why
    assert "failure" not in refused


def test_off_writes_nothing() -> None:
    assert written("off", ENDED) == []
