"""examples/compare.ipynb runs as it stands, and what its cells end with can be shown in a notebook."""

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOK = json.loads((Path(__file__).parent.parent / "examples" / "compare.ipynb").read_text())


def shown() -> list[Any]:
    """The value of the last expression of each code cell, in one namespace."""
    found = []
    space: dict[str, Any] = {}
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(before, []), "cell", "exec"), space)
            assert isinstance(last, ast.Expr)
            found.append(eval(compile(ast.Expression(last.value), "cell", "eval"), space))
    return found


def test_every_cell_shows_what_the_text_says() -> None:
    result, jobs, fairness, why, waiting, router = shown()
    assert result.compare().rows[0]["measure"] == "jobs"
    for table in (result, jobs, fairness, waiting, router):
        assert "<table" in table._repr_html_()
    assert (why.code, why.values) == ("least-remaining", {"remaining": 2})
    means = dict(waiting.iter_rows())
    assert means["srtf"] < means["rr:quantum=2"] < means["fcfs"]
    joint = {(row["policy"], row["flow"]): row["normalized_service"] for row in router if row["from"] == 0}
    assert joint["request-rr", "A"] == 48
    assert joint["request-rr", "B"] < 48 / 3
    assert abs(joint["sfq", "A"] - joint["sfq", "B"]) <= 2 * 8


def test_nothing_is_kept_of_an_earlier_run() -> None:
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in NOTEBOOK["cells"])
