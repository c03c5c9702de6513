"""`fairq replay`, `fairq audit` and `fairq explain`: a ledger, checked and told."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fairq.core.lines import encode
from fairq.ledger.audit import WATCHED, Audit
from fairq.ledger.checks import Check
from fairq.ledger.explain import explain as explanation_of
from fairq.ledger.explanation import Explanation
from fairq.ledger.heaviest import charges
from fairq.ledger.reader import Line, Reader, pools_in
from fairq.ledger.replay import Replay, Result
from fairq.ledger.report import PairReport, Report
from fairq.ledger.segment import LedgerError
from fairq.ledger.words import NOT_PROMISED, amount, count, sentences

PROGRESS_FROM = 8 << 20  # bytes; shorter ledgers are read before a bar could be seen
REPORT_EVERY = 5000  # lines
TOP = 5

Ledger = Annotated[Path, typer.Argument(metavar="LEDGER", help="the ledger, one pool's folder in it, or one segment")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]


def replay(ledger: Ledger, json: Json = False) -> None:
    """Take every decision again from the recorded events and compare, byte for byte. Exit 1 at a difference."""
    results = {path: _replay(path) for path in pools_in(ledger)}
    identical = all(result.identical for result in results.values())
    if json:
        pools = [{"path": str(path), **_plain(r), "identical": r.identical} for path, r in results.items()]
        _print_json({"identical": identical, "pools": pools})
    else:
        for path, result in results.items():
            _tell_replay(path, result)
    raise typer.Exit(0 if identical else 1)


def audit(
    ledger: Ledger,
    json: Json = False,
    pairs: Annotated[int, typer.Option(min=0, help="Compare the N heaviest tenants two by two.")] = WATCHED,
) -> None:
    """Check what was promised, from events, order and charges alone. Exit 1 on a violation."""
    reports = {path: _audit(path, pairs) for path in pools_in(ledger)}
    ok = all(report.ok for report in reports.values())
    if json:
        pools = [{"path": str(path), **_plain(r), "ok": r.ok} for path, r in reports.items()]
        _print_json({"ok": ok, "pools": pools})
    else:
        for path, report in reports.items():
            _tell_audit(path, report)
    raise typer.Exit(0 if ok else 1)


def explain(
    ledger: Ledger,
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="its x-request-id")],
    json: Json = False,
) -> None:
    """Why a request waited: who was served meanwhile and why, and how long it spent where."""
    found: list[Explanation] = []
    missing: LedgerError | None = None
    for path in pools_in(ledger):
        with _bar(sum(segment.stat().st_size for segment in _files(path)), "reading") as advance:
            try:
                found.append(explanation_of(path, request, advance))
            except LedgerError as error:
                missing = error
    if not found:
        assert missing is not None
        raise missing
    story = max(found, key=lambda one: one.wall)
    if json:
        _print_json(
            {**_plain(story), "layers": story.layers, "layer": story.layer, "sentences": list(sentences(story))}
        )
        return
    console = Console(highlight=False, soft_wrap=True)
    for sentence in sentences(story):
        console.print(Text(sentence))


def _replay(path: Path) -> Result:
    replayer = Replay()
    reader = Reader(path)
    for line in _with_bar(reader, "replaying"):
        replayer.feed(line)
    result = replayer.finish(reader.notes)
    return result if result.segments else _nothing(path)


def _audit(path: Path, pairs: int) -> Report:
    heavy = [tenant for tenant, _ in charges(path).most_common(pairs)] if pairs else []
    auditor = Audit(pairs, heavy)
    reader = Reader(path)
    for line in _with_bar(reader, "auditing"):
        auditor.feed(line.value)
    report = auditor.finish(reader.notes)
    return report if report.segments else _nothing(path)


def _nothing(path: Path) -> NoReturn:
    """An empty record proves nothing, so it must not pass for a clean one."""
    raise LedgerError(f"{path}: holds no segment that can be read")


def _tell_replay(path: Path, result: Result) -> None:
    console = Console(highlight=False, soft_wrap=True)
    read = (
        f"{count(result.events, 'event')}, {count(result.decisions, 'decision')}, {count(result.segments, 'segment')}"
    )
    console.print(Text(f"{path}: {read}"))
    if result.joints:
        console.print(Text(f"{count(result.joints, 'segment boundary')[:-1]}: the state was the same on both sides"))
    _tell_interruptions(console, result.restarts, result.gaps, result.lost)
    _tell_notes(console, result.notes)
    difference = result.difference
    if difference is None:
        console.print(Text("identical: every decision is what the events lead to", style="green"))
        return
    console.print(Text(f"DIFFERENT at {difference.where}, event {difference.seq}: {difference.text}", style="red"))
    console.print(Text(f"  recorded: {difference.recorded or '(nothing)'}"))
    console.print(Text(f"  replayed: {difference.replayed or '(nothing)'}"))


def _tell_audit(path: Path, report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    settlement = f"{report.settlement} settlement"
    console.print(Text(f"{path}: pool {report.pool}, policy {report.policy}, {settlement}", style="bold"))
    read = (
        f"{count(report.events, 'event')}, {count(report.decisions, 'decision')}, {count(report.segments, 'segment')}"
    )
    alive = (
        f"{count(report.admitted, 'request')} admitted, {report.refused:,} refused, {report.living:,} alive at the end"
    )
    console.print(Text(f"{read}; {alive}"))
    _tell_interruptions(console, report.restarts, report.gaps, report.lost)
    if report.cut_off:
        console.print(Text(f"{count(report.cut_off, 'request')} had no end when the recording was interrupted"))
    _tell_notes(console, report.notes)
    console.print(_checks(report.checks))
    if report.idle:
        idle = ", ".join(f"{reason} {n:,}" for reason, n in report.idle.items())
        console.print(Text(f"Requests waited for a reason that is not the order (after so many events): {idle}."))
    if report.settlement == "forward":
        largest, dropped = f"{report.largest_carry:,}", f"{report.dropped_errors:,}"
        console.print(Text(f"Largest carry of a tenant: {largest} cost units; errors dropped by the rules: {dropped}."))
    if report.pairs:
        console.print(_pairs(report.pairs))
    if report.unwatched_decisions:
        unwatched = count(report.unwatched_decisions, "decision")
        console.print(Text(f"Pairs: the {len(report.watched)} heaviest tenants; {unwatched} of others not compared."))
    console.print(Text(NOT_PROMISED, style="dim"))
    for check in report.checks:
        if not check.ok:
            times = "once" if check.violations == 1 else f"{check.violations:,} times"
            console.print(
                Text(f"VIOLATED {times}: {check.name}, first at event {check.seq}: {check.first}", style="red")
            )
    if report.ok:
        console.print(Text("clean: every promise held", style="green"))


def _checks(checks: list[Check]) -> Table:
    table = Table("check", "result", "held", "worst", "limit", "margin", "at event", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for check in checks:
        worst, limit, margin = ("" if v is None else amount(v) for v in (check.worst, check.limit, check.margin))
        at = "" if check.seq is None else f"{check.seq}"
        table.add_row(check.name, _verdict(check), f"{check.held:,}", worst, limit, margin, at)
    return table


def _verdict(check: Check) -> Text:
    if not (check.held or check.violations):
        return Text("nothing to check", "dim")
    if check.promised:
        return Text("holds", "green") if check.ok else Text(f"VIOLATED {check.violations:,}x", "red")
    beyond = f", {check.violations:,}x beyond" if check.violations else ""
    return Text(f"not promised{beyond}", "yellow")


def _pairs(pairs: list[PairReport]) -> Table:
    title = "While both were backlogged (normalized cost units; the heaviest pairs)"
    table = Table("tenants", "seconds", "charged", "actual", "widest gap", title=title, box=None, pad_edge=False)
    table.title_justify = "left"
    heaviest = sorted(pairs, key=lambda pair: -sum(pair.charged))
    for pair in heaviest[: TOP * (TOP - 1) // 2]:
        charged, actual = (" : ".join(amount(value) for value in side) for side in (pair.charged, pair.actual))
        table.add_row(" : ".join(pair.tenants), f"{pair.seconds:.3f}", charged, actual, amount(pair.gap))
    return table


def _tell_interruptions(console: Console, restarts: int, gaps: int, lost: int) -> None:
    if restarts:
        console.print(Text(f"{count(restarts, 'restart')} of the gateway"))
    if gaps:
        console.print(Text(f"{count(gaps, 'gap')} in the recording, {count(lost, 'line')} lost"))


def _tell_notes(console: Console, notes: list[str]) -> None:
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]


def _with_bar(reader: Reader, what: str) -> Iterator[Line]:
    with _bar(reader.size, what) as advance:
        for number, line in enumerate(reader):
            if number % REPORT_EVERY == 0:
                advance(reader.done)
            yield line


@contextmanager
def _bar(size: int, what: str) -> Iterator[Any]:
    """A progress bar on standard error, for a person who waits; calls are (bytes done)."""
    if size < PROGRESS_FROM or not sys.stderr.isatty():
        yield lambda done: None
        return
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=size)
        yield lambda done: progress.update(task, completed=done)


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(encode(value))
    return plain


def _print_json(value: Any) -> None:
    typer.echo(msgspec.json.format(encode(value), indent=2).decode())
