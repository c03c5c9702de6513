"""`fairq load`: replay recorded traffic against a server, and measure what each tenant got."""

from __future__ import annotations

import asyncio
import csv
import signal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from fairq.core.errors import ConfigError

if TYPE_CHECKING:
    from fairq.load.call import Result
    from fairq.load.session import Session

Trace = Annotated[Path, typer.Argument(metavar="TRACE", help="Recorded traffic (see `fairq trace formats`).")]
TargetUrl = Annotated[str, typer.Option(help="Address of an OpenAI-compatible server.")]
ConsoleUrl = Annotated[str | None, typer.Option(help="Address of fairq's console: adds charged service.")]
Token = Annotated[str | None, typer.Option(envvar="FAIRQ_CONSOLE_TOKEN", help="The console's admin token.")]
TenantsBy = Annotated[
    str | None, typer.Option(metavar="RULE", help="Tenants of a trace without clients: one, hash:K or prefix:K.")
]
Speed = Annotated[float, typer.Option(min=0.0, help="10: ten times as fast as recorded.")]
TimeScale = Annotated[
    float | None, typer.Option(min=0.0, help="0.1: gaps between arrivals a tenth as long (speed 10).")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many requests.")]
Duration = Annotated[float | None, typer.Option(min=0.0, help="Send nothing after so many seconds.")]
Most = Annotated[int | None, typer.Option(min=1, help="At most so many under way; the others are sent late.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds of silence after which an answer is lost.")]
Model = Annotated[str | None, typer.Option(help="Model to ask for; by default the first one that the target lists.")]
Api = Annotated[str, typer.Option(help="chat or completions.")]
Stream = Annotated[bool, typer.Option(help="Stream the answers; TTFT and TPOT need it.")]
IgnoreEos = Annotated[
    bool, typer.Option(help="Ask the engine to go on to the recorded length (vLLM, SGLang, llama.cpp know it).")
]
Keys = Annotated[Path | None, typer.Option(help='API keys by tenant: JSON {"tenant": "key"} or CSV lines tenant,key.')]
Key = Annotated[str | None, typer.Option(envvar="FAIRQ_API_KEY", help="One API key for all other tenants.")]
TenantHeader = Annotated[
    str | None, typer.Option(metavar="NAME", help="Send the tenant in a header (x-fairq-tenant, where trusted).")
]
Weight = Annotated[
    list[str] | None, typer.Option(metavar="TENANT=W", help="A tenant's weight, for normalized service (1).")
]
Alpha = Annotated[str, typer.Option(help="Service per prompt token.")]
Beta = Annotated[str, typer.Option(help="Service per completion token.")]
Seed = Annotated[int, typer.Option(help="Another seed writes other prompts.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")]
CsvFile = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Also write one line per request to this file.")
]


COLUMNS = (
    *("place", "tenant", "sent_s", "late_s", "wait_s", "first_s", "last_s", "end_s", "status", "outcome"),
    *("prompt_tokens", "cached_tokens", "completion_tokens", "detail"),
)


def load(
    trace: Trace,
    target: TargetUrl,
    console: ConsoleUrl = None,
    console_token: Token = None,
    tenants_by: TenantsBy = None,
    speed: Speed = 1.0,
    time_scale: TimeScale = None,
    limit: Limit = None,
    duration: Duration = None,
    max_concurrency: Most = None,
    timeout: Timeout = 600.0,
    model: Model = None,
    api: Api = "chat",
    stream: Stream = True,
    ignore_eos: IgnoreEos = True,
    keys: Keys = None,
    key: Key = None,
    tenant_header: TenantHeader = None,
    weight: Weight = None,
    alpha: Alpha = "1",
    beta: Beta = "2",
    seed: Seed = 0,
    as_json: AsJson = False,
    csv_file: CsvFile = None,
) -> None:
    """Replay a trace, open loop: requests go out at their recorded times, however slow the answers are.

    Prompts are made of common words and have as many of them as the recorded prompt had tokens; answers are
    asked for in the recorded length.

    Example: fairq load data/vtc_real_trace.csv --target http://127.0.0.1:8080 --speed 10 --keys keys.csv

    Exit status: 0 measured; 1 not one request was completed; 2 bad input, or nobody at the target; 130
    or 143 ended by Ctrl-C or SIGTERM (what was measured until then is printed).
    """
    from fairq.load.plan import Identity, read_keys  # what sends is not loaded for `fairq --help`
    from fairq.load.session import Session, Settings
    from fairq.load.tally import Rates

    settings = Settings(
        trace=trace,
        target=target,
        tenants_by=tenants_by,
        speed=_speed(speed, time_scale),
        limit=limit,
        duration=duration,
        max_concurrency=max_concurrency,
        timeout=timeout,
        model=model,
        api=api,
        stream=stream,
        ignore_eos=ignore_eos,
        identity=Identity(keys=read_keys(keys) if keys else {}, key=key, header=tenant_header),
        rates=Rates(_rational("--alpha", alpha), _rational("--beta", beta), _weights(weight or [])),
        seed=seed,
        console=console,
        console_token=console_token,
    )
    session = Session(settings)
    if csv_file:
        _check_writable(csv_file)
    ended_by = _run(session)
    report = session.report()
    if csv_file:
        _write_csv(csv_file, session.results)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        from fairq.cli.load_report import show

        show(report)
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)
    if not report.total.outcomes.get("completed"):
        raise typer.Exit(1)


def _speed(speed: float, time_scale: float | None) -> float:
    if time_scale is None:
        key, value, speed = "--speed", speed, speed
    elif speed != 1.0:
        raise ConfigError("--time-scale", time_scale, "is the inverse of --speed: give one of the two")
    else:
        key, value, speed = "--time-scale", time_scale, 1 / time_scale if time_scale else 0.0
    if not speed > 0:
        raise ConfigError(key, value, "must be more than 0")
    return speed


def _rational(key: str, text: str) -> Fraction:
    """A number of at least 0 as written: 2, 0.5 or 1/3."""
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        raise ConfigError(key, text, "must be a number of at least 0, like 2, 0.5 or 1/3")
    return number


def _weights(entries: list[str]) -> dict[str, Fraction]:
    weights = {}
    for entry in entries:
        tenant, sign, text = entry.rpartition("=")
        if not sign or not tenant:
            raise ConfigError("--weight", entry, "must be TENANT=W")
        weights[tenant] = _rational(f"--weight {tenant}", text)
        if not weights[tenant]:
            raise ConfigError(f"--weight {tenant}", text, "must be more than 0")
    return weights


def _check_writable(path: Path) -> None:
    """Before the run, not after it."""
    try:
        path.touch()
    except OSError as error:
        raise ConfigError("--csv", str(path), f"cannot be written: {error.strerror}") from None


def _run(session: Session) -> int | None:
    """Send everything, with a progress bar where someone watches. The signal that ended it early, in good order."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from fairq.engines.process import new_event_loop

    ended_by: list[int] = []

    def stop(number: int) -> None:
        ended_by.append(number)
        session.stop()

    async def until_done() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        await session.run(lambda result: progress.advance(task), progress.start)

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(f"{session.trace.name} x{session.settings.speed:g}", total=len(session.plan))
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(until_done())
    finally:
        progress.stop()
    return ended_by[0] if ended_by else None


def _write_csv(path: Path, results: list[Result]) -> None:
    """One line per request, in order of sending. Times in seconds since the first was sent; empty when unknown."""
    start = min((result.sent for result in results), default=0)

    def seconds(time: int | None, since: int = 0) -> str:
        return "" if time is None else f"{(time - since) / 1e9:.6f}"

    with path.open("w", newline="") as lines:
        out = csv.writer(lines)
        out.writerow(COLUMNS)
        for result in sorted(results, key=lambda result: result.place):
            times = [seconds(result.sent, start), seconds(result.late), seconds(result.wait)]
            times += [seconds(time, start) for time in (result.first, result.last, result.end)]
            usage = result.usage
            tokens = [usage.prompt, usage.cached, usage.completion]
            out.writerow([result.place, result.tenant, *times, result.status, result.outcome, *tokens, result.detail])
