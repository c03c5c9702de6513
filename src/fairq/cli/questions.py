"""What `fairq choose` asks, what may be answered, and what is meant where nobody answers."""

from collections.abc import Mapping

from msgspec import Struct

from fairq.core.errors import UnknownName


class Question(Struct, frozen=True, kw_only=True):
    """answers: what may be said -> what that means; default: where nobody says."""

    key: str
    ask: str
    answers: Mapping[str, str]
    default: str | None = None


QUESTIONS = (
    Question(
        key="layer",
        ask="Where is the decision taken?",
        answers={
            "cpu": "tasks on processors",
            "link": "packets on a link",
            "cluster": "tasks that hold several resources",
            "router": "requests in front of servers that stay as they are",
            "engine": "inside a server, between iterations of its batch",
        },
    ),
    Question(
        key="objective",
        ask="What matters most?",
        answers={
            "completion": "jobs are done early, on average",
            "response": "jobs begin soon",
            "deadlines": "jobs are done in time",
            "share": "everybody gets a share, in proportion to a weight",
            "slo": "latency targets and efficiency of the hardware, together",
        },
    ),
    Question(
        key="subject",
        ask="Who is to be treated fairly?",
        answers={
            "process": "each task",
            "flow": "each stream of packets",
            "user": "each user",
            "organisation": "each organisation, and its users among themselves",
            "api-key": "each API key",
            "model": "each model",
        },
        default="user",
    ),
    Question(
        key="sizes",
        ask="Is it known beforehand how much each job needs?",
        answers={"exact": "exactly", "estimated": "roughly", "unknown": "not at all"},
        default="estimated",
    ),
    Question(
        key="preemption",
        ask="Can a job be stopped and go on later?",
        answers={"yes": "at little cost", "no": "what has begun is not interrupted"},
        default="yes",
    ),
    Question(
        key="resources",
        ask="Is one resource scarce, or several?",
        answers={"one": "one is", "several": "several at once are"},
        default="one",
    ),
    Question(
        key="locality",
        ask="Does it matter which jobs run together or where (shared prefixes, caches)?",
        answers={"yes": "it does", "no": "it does not"},
        default="no",
    ),
    Question(
        key="deadlines",
        ask="Is a late result worthless, or just worth less?",
        answers={"hard": "worthless", "soft": "worth less", "none": "there are no deadlines"},
        default="none",
    ),
)
DEFAULTS = {question.key: question.default for question in QUESTIONS}
# What a layer settles unless somebody says otherwise.
OF_LAYER = {
    "link": {"subject": "flow", "sizes": "exact", "preemption": "no"},
    "router": {"preemption": "no"},
    "engine": {"sizes": "unknown"},
    "cluster": {"resources": "several", "preemption": "no"},
    "cpu": {"subject": "process"},
}


def settled(given: Mapping[str, str | None]) -> dict[str, str]:
    """Every question answered: as given, as the layer implies, or by default. Raises UnknownName."""
    for question in QUESTIONS:
        answer = given.get(question.key)
        if answer is not None and answer not in question.answers:
            raise UnknownName(f"--{question.key}", answer, question.answers)
    layer = OF_LAYER.get(given.get("layer") or "", {})
    found = {}
    for key, default in DEFAULTS.items():
        answer = given.get(key) or layer.get(key) or default
        if answer is not None:
            found[key] = answer
    if found.get("objective") == "deadlines" and not given.get("deadlines"):
        found["deadlines"] = "hard"
    return found
