"""How far a long piece of work is: shown on a terminal, after its first second, and taken away at the end."""

import sys
from collections.abc import Callable, Iterator, Sequence
from threading import Timer
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds


def watched(items: Sequence[T], name: Callable[[T], str] = str) -> Iterator[T]:
    """The items one by one; `name` says what is being done with one. Writes to standard error, to a terminal only."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    progress = Progress(
        *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    task = progress.add_task("", total=len(items))
    timer = Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        for done, item in enumerate(items):
            progress.update(task, description=name(item), completed=done)
            yield item
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
