"""How far a long piece of work is: shown on a terminal, after its first second, and taken away at the end."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from threading import Timer
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds


def watched(items: Iterable[T], name: Callable[[T], str] = str, total: int | None = None) -> Iterator[T]:
    """The items one by one; `name` says what is being done with one. Writes to standard error, to a terminal only.

    total: how many, where `items` cannot say.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    progress = Progress(
        *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    task = progress.add_task("", total=len(items) if isinstance(items, Sized) else total)
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
