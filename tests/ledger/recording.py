"""A scheduler with a ledger and without a gateway: it numbers events, records them, and checks nothing itself."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairq import placements, policies
from fairq.core import events as ev
from fairq.core.commands import AnyCommand, Dispatch
from fairq.core.cost import Source, Usage
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode, encode_lines
from fairq.core.policy import Policy
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup
from fairq.ledger.audit import Audit
from fairq.ledger.checks import Check
from fairq.ledger.reader import Reader
from fairq.ledger.replay import Replay, Result
from fairq.ledger.report import Report
from fairq.ledger.segment import Head, head_of, name_of

FAR = 1 << 60


class Recording:
    """`record` gets the lines of each event, newlines included; by default they are kept in `lines`."""

    def __init__(
        self,
        setup: Setup | None = None,
        policy: Callable[[str], Policy] = policies.make,
        record: Callable[[bytes], None] | None = None,
    ) -> None:
        self.setup = setup or Setup(wait_for_upstream=FAR)
        self.scheduler = Scheduler(self.setup, policy(self.setup.policy), placements.make(self.setup.placement))
        self.now = 0
        self.lines: list[bytes] = []
        self.head = self.make_head()
        self.order: list[str] = []
        self._record = record or self._keep
        self._arrived = 0

    def make_head(self) -> Head:
        return head_of(self.scheduler, wall=10**18 + self.now, monotonic=self.now)

    def emit(self, kind: type[ev.Event], **fields: Any) -> list[AnyCommand]:
        event: Any = kind(seq=self.scheduler.seq + 1, time=self.now, **fields)
        commands = self.scheduler.handle(event)
        self._record(encode_lines([event, *commands]))
        self.order += [command.tenant for command in commands if isinstance(command, Dispatch) and command.attempt == 1]
        return commands

    def upstream(self, slots: int, name: str = "u", healthy: bool = True, draining: bool = False) -> list[AnyCommand]:
        return self.emit(ev.UpstreamChanged, upstream=name, slots=slots, healthy=healthy, draining=draining)

    def admit(self, tenant: str, cost: int | None = None, **fields: Any) -> str:
        """A request of a fixed cost, or of what `fields` make the estimator believe."""
        self._arrived += 1
        id_ = f"{tenant}{self._arrived}"
        fields = {"expires": FAR} | fields
        self.emit(
            ev.Admitted,
            request=Request(id=id_, flow=tenant, seq=self._arrived, arrival=self.now, size=cost, **fields),
        )
        return id_

    def finish(self, id_: str, outcome: Outcome = Outcome.COMPLETED, prompt: int = 1, completion: int = 1) -> None:
        usage = Usage(prompt, completion, 0, Source.UPSTREAM)
        first, last = max(self.now - completion, 0), self.now
        self.emit(ev.Finished, id=id_, outcome=outcome, usage=usage, status=200, first_byte=first, last_byte=last)

    def running(self) -> list[str]:
        return [id_ for id_, entry in self.scheduler.jobs.items() if entry.state == "running"]

    def save(self, folder: Path) -> Path:
        """All lines as one segment."""
        return write_segment(folder, 1, [encode(self.head) + b"\n", *self.lines])

    def _keep(self, lines: bytes) -> None:
        self.lines += lines.splitlines(keepends=True)


def write_segment(folder: Path, number: int, lines: Iterable[bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name_of(number)).write_bytes(b"".join(lines))
    return folder


def audit(path: Path, **options: Any) -> Report:
    reader, auditor = Reader(path), Audit(**options)
    for line in reader:
        auditor.feed(line.value)
    return auditor.finish(reader.notes)


def replay(path: Path, **options: Any) -> Result:
    reader, replayer = Reader(path), Replay(**options)
    for line in reader:
        replayer.feed(line)
    return replayer.finish(reader.notes)


def check_of(report: Report, name: str) -> Check:
    return next(check for check in report.checks if check.name == name)


def violated(report: Report) -> set[str]:
    return {check.name for check in report.checks if not check.ok}


def router_example(policy: str = "sfq", make: Callable[[str], Policy] = policies.make) -> Recording:
    """The article's default: A 8 x 3, B 2 x 7 from the start, C 4 x 4 joining at 3; one slot, one tick per request."""
    run = Recording(Setup(policy=policy, flows=[Flow(id=name) for name in "ABC"], wait_for_upstream=FAR), make)
    for tenant, cost, count in (("A", 8, 3), ("B", 2, 7)):
        for _ in range(count):
            run.admit(tenant, cost)
    run.upstream(1)
    while run.running():
        run.now += 1
        if run.now == 3:
            for _ in range(4):
                run.admit("C", 4)
        run.finish(run.running()[0])
    return run
