"""Every registered policy passes the public conformance test, in its default form and with its options."""

import pytest

from fairq.policies import POLICIES, make
from fairq.testing import check_policy


@pytest.mark.parametrize("spec", [*POLICIES, "sfq:credit=15"])
def test_policy_conforms(spec: str) -> None:
    check_policy(lambda: make(spec), examples=20)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [*POLICIES, "sfq:credit=15"])
def test_policy_conforms_at_length(spec: str) -> None:
    check_policy(lambda: make(spec), examples=500, steps=80)
