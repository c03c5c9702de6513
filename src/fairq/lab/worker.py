"""The process that computes: `python -m fairq.lab.worker`. An order a line on standard input; on standard output for
each a head line, `STATUS LENGTH`, and so many bytes of JSON. It ends with its input."""

import re
import resource
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from fairq.core.errors import FairqError
from fairq.core.wrong_value import WrongValue
from fairq.lab.files import recent
from fairq.lab.play import as_text, play
from fairq.lab.views import LabFailure, LabProblem, Order

Place = list[str | int]
PLACE = re.compile(r"(?:scenario(?:\.yaml(?::\d+)?)?: )?([^\s:=\[\]][^\s:=]*)(?: = .*)?: ")
STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
RECENT = b"recent "
MOST_PLAIN = 1 << 20  # bytes of an order without files
MEMORY = 2 << 30  # bytes of address space: a scenario can be larger than it looks


class Window(Struct):
    """The last `seconds` of a pool; `folder`: of its segments."""

    folder: str
    seconds: float


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin.buffer:
        status, body = answer(line)
        sys.stdout.buffer.write(b"%d %d\n" % (status, len(body)) + body)
        sys.stdout.buffer.flush()


def answer(line: bytes) -> tuple[int, bytes]:
    """(HTTP status, JSON)"""
    try:
        if line.startswith(RECENT):  # from the server itself: an order begins with a brace
            window = msgspec.json.decode(line.removeprefix(RECENT), type=Window)
            return 200, msgspec.json.encode(recent(Path(window.folder), window.seconds))
        order = msgspec.json.decode(line, type=Order)
        if not order.files and len(line) > MOST_PLAIN:
            return failure(413, "too_large", f"an order without files may have {MOST_PLAIN} bytes")
        return 200, msgspec.json.encode(play(order), enc_hook=as_text)
    except msgspec.ValidationError as error:
        return failure(400, "wrong_body", str(WrongValue.read(error, line)))
    except msgspec.DecodeError as error:
        return failure(400, "wrong_body", f"the body is not valid JSON: {error}")
    except FairqError as error:
        return failure(400, "wrong_scenario", str(error), [place_of(line) for line in str(error).splitlines()])
    except MemoryError:
        return failure(400, "too_large", "scenario: needs more memory than the lab has; `fairq sim` has no such limit")


def failure(status: int, code: str, message: str, places: list[Place] | None = None) -> tuple[int, bytes]:
    return status, msgspec.json.encode(LabFailure(LabProblem(code, message, places or [])))


def place_of(line: str) -> Place:
    """Of `scenario: tasks[0].burst = 'x': must be ...`: where that value is."""
    found = PLACE.match(line)
    steps = STEP.findall(found[1]) if found else []
    return [int(index) if index else key for index, key in steps]


if __name__ == "__main__":
    main()
