"""fairq decides whose work runs next: a fair gateway for shared LLM servers, and the schedulers behind it.

`fairq.run(scenario, "sjf", "rr:quantum=2")` runs schedulers and gives a `fairq.Result`.
"""

TYPE_CHECKING = False  # as type checkers read it; `typing` alone takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from fairq.result import Result as Result
    from fairq.result import run as run

__version__ = "0.1.0"
__all__ = ["Result", "run"]


def __getattr__(name: str) -> "Any":
    """What is in `fairq.result` is loaded when it is asked for, so that `import fairq` stays quick."""
    if name in ("Result", "run"):
        from fairq import result

        return getattr(result, name)
    raise AttributeError(f"module 'fairq' has no attribute {name!r}")
