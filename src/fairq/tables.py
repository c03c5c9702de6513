"""Rows for people and programs: text, HTML, CSV, a polars frame, Parquet."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from fairq.core.errors import ConfigError

if TYPE_CHECKING:
    import polars
    from rich.console import Console, ConsoleOptions, RenderResult

Row = dict[str, Any]
SHOWN = 200  # rows; exports have all


class Table:
    """Rows with the same columns, in the order of their first appearance; a cell that a row lacks is None."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows: list[Row] = [dict(row) for row in rows]
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=200, highlight=False)
        with console.capture() as text:
            console.print(self)
        return text.get().rstrip()

    __repr__ = __str__

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.markup import escape as plain
        from rich.table import Column
        from rich.table import Table as Rich

        table = Rich(*(Column(plain(column), overflow="fold") for column in self.columns))
        for row in self.rows[:SHOWN]:
            table.add_row(*(plain(shown(row.get(column))) for column in self.columns))
        yield table
        if len(self) > SHOWN:
            yield f"and {len(self) - SHOWN} more"

    def _repr_html_(self) -> str:
        """For notebooks."""
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        cells = (
            "".join(f"<td>{escape(shown(row.get(column)))}</td>" for column in self.columns)
            for row in self.rows[:SHOWN]
        )
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = f"<p>and {len(self) - SHOWN} more</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def csv(self) -> str:
        """Exact: a fraction is written as 7/2. What is None is empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def frame(self) -> "polars.DataFrame":
        """Fractions become floats; a column with both numbers and texts becomes text. ConfigError without polars."""
        try:
            import polars
        except ImportError:
            rule = "needs polars, which is not installed: pip install 'fairq[frame]'"
            raise ConfigError("frame", "polars", rule) from None
        return polars.DataFrame({column: self._column(column) for column in self.columns}, strict=False)

    def parquet(self) -> bytes:
        """The frame as a Parquet file. ConfigError without polars."""
        file = io.BytesIO()
        self.frame().write_parquet(file)
        return file.getvalue()

    def _column(self, column: str) -> list[Any]:
        values = [row.get(column) for row in self.rows]
        kinds = {type(value) for value in values} - {type(None)}
        if str in kinds and len(kinds) > 1:
            return [None if value is None else str(value) for value in values]
        if Fraction in kinds or kinds == {int, float}:
            return [None if value is None else float(value) for value in values]
        return values


def shown(value: object) -> str:
    """A cell for people: at most six digits of a number that is not whole."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{float(value):.6g}" if isinstance(value, (float, Fraction)) else str(value)
