"""The CPU's policies pass the public conformance test with their options, too."""

import pytest

from fairq.policies import make
from fairq.testing import check_policy

SPECS = [
    "rr:quantum=3,expired-first=on",
    "mlfq:boost=7,aging=3,anti-gaming=off",
    "mlfq:quantum=2/3/4,allotment=5,boost=5",
    "priority:aging=1,boost=3,quantum=3",
    "priority:preemptive=off",
    "rm:by=deadline",
    "lottery:compensation=off,quantum=3",
    "stride:initial=zero,quantum=3",
    "cfs:debit=off,sleeper-credit=off",
    "eevdf:form=1995",
    "eevdf:parity=off,initial=half,quantum=2",
]


@pytest.mark.parametrize("spec", SPECS)
def test_policy_conforms_with_options(spec: str) -> None:
    check_policy(lambda: make(spec), examples=10)


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
def test_policy_conforms_with_options_at_length(spec: str) -> None:
    check_policy(lambda: make(spec), examples=300, steps=80)
