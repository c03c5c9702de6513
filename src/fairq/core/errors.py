"""The errors of the core. A shell maps them: `ConfigError` is the user's mistake, `InvalidTransition` is ours."""

from collections.abc import Iterable
from difflib import get_close_matches
from errno import EADDRNOTAVAIL


class FairqError(Exception):
    """Base of every error that fairq raises on purpose."""


class ConfigError(FairqError):
    """A value that a user gave breaks a rule. One line: key, value (None: there is none to show), rule."""

    def __init__(self, key: str, value: object, rule: str) -> None:
        super().__init__(f"{key}{'' if value is None else f' = {value!r}'}: {rule}")
        self.key, self.value, self.rule = key, value, rule


class UnknownName(ConfigError):
    """A name that is not in a registry; the message lists the nearest ones."""

    def __init__(self, key: str, value: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(value, names, n=3) or [name for name in names if value and name.startswith(value)]
        known_ones = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
        super().__init__(key, value, f"unknown; {known_ones}")


class CannotListen(ConfigError):
    """An address that a server cannot have: names the key to change, of the host's and the port's."""

    def __init__(self, host_key: str, port_key: str, host: str, port: int, error: OSError) -> None:
        cause = (error.strerror or str(error)).partition(" (while")[0].rpartition(": ")[2]
        if error.errno == EADDRNOTAVAIL or (error.errno or 0) < 0:  # below 0: a name that nobody knows
            super().__init__(host_key, host, f"cannot listen there: {cause.lower()}")
        else:
            super().__init__(port_key, port, f"cannot listen there on {host}: {cause.lower()}")


class InvalidTransition(FairqError):
    """An event that a job's state does not allow. Carries the job's story, so that a bug report is a test case."""

    def __init__(self, job: str, state: str, event: str, story: str) -> None:
        super().__init__(f"job {job} is {state}: {event} is not possible; its story: {story}")


class ValidationFailed(FairqError):
    """`validate()` found a broken invariant."""


def check(holds: bool, complaint: str) -> None:
    """For `validate`: an assert that `python -O` keeps."""
    if not holds:
        raise ValidationFailed(complaint)
