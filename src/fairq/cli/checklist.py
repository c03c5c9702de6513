"""What to settle before a scheduler goes into use: ten questions, with the answers that are known by then."""

from collections.abc import Mapping

from fairq.cli.advice import Advice
from fairq.cli.questions import QUESTIONS

RETURNS = {
    "sfq": "joins at max(M, V): nothing is banked; credit=B allows a bounded burst on purpose",
    "drr": "a flow without work loses its deficit counter: nothing is banked",
    "stride": "what it was ahead or behind by when it left is kept",
    "cfs": "joins near min_vruntime, with at most half a latency of credit",
    "eevdf": "its lag is kept, within two requests",
    "vtc": "its counter is lifted to the least of those that wait: nothing is banked",
    "dlpm": "joins like the others of its round",
    "drf": "only running tasks count: there is no memory",
}
DIVISIBLE = {
    "cpu": {"yes": "running jobs are stopped", "no": "a running job is finished first"},
    "link": {"yes": "a packet under way is finished first", "no": "a packet under way is finished first"},
    "cluster": {"yes": "running tasks are not stopped", "no": "running tasks are not stopped"},
    "router": {"yes": "a dispatched request does not come back", "no": "a dispatched request does not come back"},
    "engine": {"yes": "a batch changes between iterations", "no": "a batch changes between iterations"},
}
COSTS = {
    "exact": "the size of the job",
    "estimated": "an estimate: settle how it is made, and what becomes of its error",
    "unknown": "what is given, as it is given: settle the price of each kind",
}
WATCH = {
    "cpu": "turnaround, waiting and response of each task, deadline misses, switches",
    "link": "delay and normalized service of each flow, drops",
    "cluster": "dominant share and waiting of each user, use of each resource",
    "router": "waiting, normalized cost and meter of each tenant, TTFT and TPOT, cache hits",
    "engine": "service, TTFT and TPOT of each user, counters, cache hits, memory",
}
HOSTILE = "not yet: heavy-tailed sizes, bursts, one job at a time with a new join each, false estimates, cancellations"


def checklist(answers: Mapping[str, str], best: Advice) -> list[dict[str, str | int | None]]:
    """Each with its question, and the answer as far as the choice settles it; None where it is still to be found."""
    layer, first = answers["layer"], best.policies[0].partition(":")[0]
    said = {question.key: question.answers for question in QUESTIONS}
    idles = (
        "misfit=stop leaves room free while a small task waits" if first == "drf" else "never idle while a job waits"
    )
    items = (
        ("objective", "Mean, tail, deadlines or isolation: what comes first?", said["objective"][answers["objective"]]),
        (
            "backlogged",
            "When does somebody count as having work?",
            "while a job waits in its queue; running ones do not count",
        ),
        ("cost", "What is a job charged, and in which unit?", COSTS[answers["sizes"]]),
        ("weights", "What does a weight of 2 mean?", "twice the service while both are backlogged; not a priority"),
        ("return", "Does idle time bank anything?", RETURNS.get(first)),
        ("indivisible", "Where is the point of no return?", DIVISIBLE[layer][answers["preemption"]]),
        ("work conservation", "Is anything left idle for fairness's sake?", idles),
        ("hostile input", "What was tried against it?", HOSTILE),
        (
            "distribution",
            "Is the state in one place?",
            "one scheduler for each pool; copies of it are not fair together",
        ),
        ("observation", "What is recorded, for each, at the same time?", WATCH[layer]),
    )
    return [
        {"number": number, "topic": topic, "question": question, "answer": answer}
        for number, (topic, question, answer) in enumerate(items, 1)
    ]
