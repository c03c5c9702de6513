"""What tests of policies and of whatever stands before an LLM server need."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "check_policy":  # imported on demand: it needs hypothesis, the rest does not
        from fairq.testing.policies import check_policy

        return check_policy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
