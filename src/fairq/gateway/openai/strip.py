"""Takes usage-only events out of a stream whose client did not ask for usage. Every other byte passes, at once."""

import re
from typing import Final

import msgspec

from fairq.gateway.openai.peek import members

MAX_HELD: Final = 1 << 13  # a longer event is no usage report

# What a usage-only chunk may carry besides null fields. `timings`: llama.cpp puts them into its last chunk.
ENVELOPE: Final = frozenset(
    ["id", "object", "created", "model", "system_fingerprint", "service_tier", "obfuscation", "timings"]
)
NULL: Final = msgspec.Raw(b"null")
NO_CHOICES: Final = re.compile(rb"\[\s*\]")
SOME_CHOICES: Final = re.compile(rb'"choices"\s*:\s*(?:\[\s*[^\]\s]|[^\[\s])')
NO_OBJECT: Final = re.compile(rb"data:\s*[^{\s]")
LINE_ENDS: Final = (b"\n", b"\r\n", b"\r")


def reports_only_usage(data: bytes) -> bool:
    """Whether an event's data is a chunk with empty `choices` that is there for its usage alone."""
    try:
        found = members(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    usage, choices = found.pop("usage", NULL), found.pop("choices", NULL)
    if not bytes(usage).startswith(b"{") or NO_CHOICES.fullmatch(choices) is None:
        return False
    for name, value in found.items():  # noqa: SIM110  # `all` makes a generator
        if name not in ENVELOPE and bytes(value) != b"null":
            return False
    return True


class UsageStripper:
    """`feed` the bytes of a stream, cut anywhere, and pass on what it returns; `finish` returns the rest.

    An event is held only while it may still turn out to be a usage report, which its first bytes mostly refute.
    Engines send an event in one piece, and then nothing waits.
    """

    __slots__ = ("_after_cr", "_held", "_line", "_mid_line", "_passing", "_removed", "between")

    def __init__(self) -> None:
        self.between = True  # nothing is held or half passed: the stream is between two events
        self._held: list[bytes] = []  # whole lines of an event that may be a usage report
        self._line = b""  # its next line, as far as it is here
        self._passing = False  # in an event that is none
        self._mid_line = False  # while passing: the last byte that went out ended no line
        self._after_cr = False  # the last byte was a CR; a LF now belongs to it
        self._removed = False  # the last line went away with its event

    def feed(self, data: bytes) -> bytes:
        if self.between and data.endswith(b"\n\n") and 13 not in data:  # whole events, as engines send them
            if b'"usage"' not in data:
                return data
            if not data.startswith(b"\n") and b"\n\n\n" not in data:
                return b"".join([event + b"\n\n" for event in data[:-2].split(b"\n\n") if not _is_report(event)])
        out: list[bytes] = []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            if self._held:
                self._held[-1] += b"\n"
            elif not self._removed:
                out.append(b"\n")
            self._after_cr = False
        for piece in data.splitlines(keepends=True):
            if self._passing:
                self._pass(piece, out)
            else:
                self._judge(piece, out)
        if data:
            self._after_cr = data.endswith(b"\r")
        self.between = not (self._held or self._line or self._passing or self._after_cr)
        return b"".join(out)

    def finish(self) -> bytes:
        """The end of the stream. A usage report without its blank line is one all the same."""
        rest = [*self._held, self._line] if self._held or self._line else []
        self._held, self._line, self.between = [], b"", True
        return b"" if not rest or reports_only_usage(_data(rest)) else b"".join(rest)

    def _pass(self, piece: bytes, out: list[bytes]) -> None:
        out.append(piece)
        self._passing = self._mid_line or piece not in LINE_ENDS
        self._mid_line = not piece.endswith((b"\n", b"\r"))

    def _judge(self, piece: bytes, out: list[bytes]) -> None:
        line = self._line + piece
        self._line = b""
        self._removed = False
        held = self._held
        if line in LINE_ENDS:
            self._removed = reports_only_usage(_data(held))
            if not self._removed:
                out += [*held, line]
            self._held = []
        elif _refuted(line, first=not held) or sum(map(len, held)) + len(line) > MAX_HELD:
            out += [*held, line]
            self._held = []
            self._passing = True
            self._mid_line = not line.endswith((b"\n", b"\r"))
        elif line.endswith((b"\n", b"\r")):
            held.append(line)
        else:
            self._line = line


def _is_report(event: bytes) -> bool:
    """A whole event, without its blank line."""
    if b'"usage"' not in event or len(event) >= MAX_HELD:
        return False
    lines = event.split(b"\n")
    for line in lines:
        if not line.startswith(b"data:"):
            return False
    return reports_only_usage(_data(lines))


def _refuted(line: bytes, first: bool) -> bool:
    """Whether an event with this line, perhaps not all of it, is certainly more than a usage report."""
    if not line.startswith(b"data:"):
        return not b"data:".startswith(line)
    if b'"choices"' in line and SOME_CHOICES.search(line) is not None:
        return True
    return first and NO_OBJECT.match(line) is not None


def _data(lines: list[bytes]) -> bytes:
    return b"\n".join(line.rstrip(b"\r\n").removeprefix(b"data:") for line in lines)
