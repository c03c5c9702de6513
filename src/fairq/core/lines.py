"""How events, commands and states are written and read: JSON lines, with rationals as "7/2"."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from fairq.core.commands import AnyCommand
from fairq.core.events import AnyEvent

T = TypeVar("T")


def _write(value: object) -> str:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _read(kind: type, value: Any) -> Any:
    if kind is Fraction:
        return Fraction(value)
    raise NotImplementedError(f"{kind} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_write)
encode = _encoder.encode
"""An event, command or state -> one line of JSON bytes, without the newline."""

encode_lines = _encoder.encode_lines
"""A list of them -> their lines, each with its newline; a third cheaper than one by one."""


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """A function from one line to the value of type `kind` it holds. It raises msgspec.DecodeError."""
    return msgspec.json.Decoder(kind, dec_hook=_read).decode


decode = decoder(AnyEvent | AnyCommand)
"""One line -> the event or command it holds. Raises msgspec.DecodeError."""


def to_plain(value: object) -> Any:
    """Structs to dicts and lists that `encode` takes."""
    return msgspec.to_builtins(value, enc_hook=_write)


def of_plain(value: Any, kind: type[T]) -> T:
    """The inverse of `to_plain`."""
    return msgspec.convert(value, kind, dec_hook=_read)
