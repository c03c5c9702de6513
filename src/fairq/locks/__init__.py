"""Lock protocols of the CPU layer. Adding one is a file in this folder and a line here."""

from fairq.locks.ceiling import Ceiling
from fairq.locks.immediate_ceiling import ImmediateCeiling
from fairq.locks.inheritance import Inheritance
from fairq.locks.protocol import Hold, Protocol

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (Protocol, Inheritance, Ceiling, ImmediateCeiling)
}

__all__ = ["PROTOCOLS", "Ceiling", "Hold", "ImmediateCeiling", "Inheritance", "Protocol"]
