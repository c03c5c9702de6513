"""Readers of recorded LLM traffic: lengths, times, clients and prefix blocks; never text."""

from fairq.traces.describe import Description, describe
from fairq.traces.formats import FORMATS, Format
from fairq.traces.request import Measured, Request, TraceError
from fairq.traces.tenants import default_rule, with_tenants
from fairq.traces.trace import Trace

__all__ = [
    "FORMATS",
    "Description",
    "Format",
    "Measured",
    "Request",
    "Trace",
    "TraceError",
    "default_rule",
    "describe",
    "with_tenants",
]
