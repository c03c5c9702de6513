"""`fairq` as it is typed, in this process."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from fairq import cli


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def fairq(*arguments: object) -> Said:
    """Exit status and both outputs of one command."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with patch("sys.argv", ["fairq", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Said(status, out.getvalue(), err.getvalue())
