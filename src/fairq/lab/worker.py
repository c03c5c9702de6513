"""The process that computes: `python -m fairq.lab.worker`. An order a line on standard input; on standard output for
each a head line, `STATUS LENGTH`, and so many bytes of JSON. It ends with its input."""

import resource
import sys

import msgspec

from fairq.core.errors import FairqError
from fairq.core.wrong_value import WrongValue
from fairq.lab.play import as_text, play
from fairq.lab.views import LabFailure, LabProblem, Order

MEMORY = 2 << 30  # bytes of address space: a scenario can be larger than it looks


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin.buffer:
        status, body = answer(line)
        sys.stdout.buffer.write(b"%d %d\n" % (status, len(body)) + body)
        sys.stdout.buffer.flush()


def answer(line: bytes) -> tuple[int, bytes]:
    """(HTTP status, JSON)"""
    try:
        order = msgspec.json.decode(line, type=Order)
        return 200, msgspec.json.encode(play(order), enc_hook=as_text)
    except msgspec.ValidationError as error:
        return failure(400, "wrong_body", str(WrongValue.read(error, line)))
    except msgspec.DecodeError as error:
        return failure(400, "wrong_body", f"the body is not valid JSON: {error}")
    except FairqError as error:
        return failure(400, "wrong_scenario", str(error))
    except MemoryError:
        return failure(400, "too_large", "scenario: needs more memory than the lab has; `fairq sim` has no such limit")


def failure(status: int, code: str, message: str) -> tuple[int, bytes]:
    return status, msgspec.json.encode(LabFailure(LabProblem(code, message)))


if __name__ == "__main__":
    main()
