"""Which scheduler for which purpose: the advice, and which answers lead to it.

A scheduler is an objective, assumptions, a unit of charge and a layer; the rule that picks the next job is one part.
So the questions come first. `row` is the situation's number in the table of docs/choosing.md.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace


class Advice(Struct, frozen=True, kw_only=True):
    """policies: the first one first. `command` tries them, with {policies} for the options that name them."""

    row: int | None
    policies: tuple[str, ...]
    why: str
    assumes: tuple[str, ...] = ()
    beware: tuple[str, ...] = ()
    command: str


CPU = "fairq sim cpu --task A:0:7 --task B:1:4 --task C:2:1 --task D:4:3 {policies}"
RECURRING = "fairq sim cpu --periodic T1:5:2 --periodic T2:7:4 {policies}"
LINK = "fairq sim link --packet A:0:1500:count=3 --packet B:0:500:count=7 {policies}"
ROUTER = "fairq sim router --tenant A:cost=8,count=3 --tenant B:cost=2,count=7 {policies}"
CLUSTER = "fairq sim cluster --capacity cpu=9,mem=18 --user A:cpu=1,mem=4 --user B:cpu=3,mem=1 {policies}"
ENGINE = "fairq sim engine --request A:0:256:256:count=60,every=1/2 --request B:0:256:256:count=60,every=1 {policies}"
FLEET = "fairq sim fleet --workload tree-of-thoughts --prefix-cache --placement d2lpm {policies}"

SHORTEST = Advice(
    row=1,
    policies=("srtf", "sjf"),
    why="The shortest first makes the mean completion time least; SRTF also when jobs come later.",
    assumes=("sizes are known", "one processor", "SRTF: preemption is free; SJF: all jobs are there at the start"),
    beware=("long jobs starve while short ones keep coming", "a wrong estimate moves a job, a lie pays"),
    command=CPU,
)
UNINTERRUPTED = Advice(
    row=1,
    policies=("sjf",),
    why="The shortest of those that wait makes the mean wait least, when what has begun runs to its end.",
    assumes=("sizes are known", "one processor", "all jobs are there at the start"),
    beware=SHORTEST.beware,
    command=CPU,
)
RESPONSIVE = Advice(
    row=2,
    policies=("rr", "mlfq"),
    why="Everybody runs soon, whatever they need; MLFQ learns from what jobs did who is short or interactive.",
    assumes=("preemption",),
    beware=(
        "a short quantum pays for response with switches and cold caches",
        "MLFQ: without a boost the lowest level can starve; without anti-gaming who sleeps just in time stays on top",
    ),
    command=CPU,
)
UNKNOWN_SIZES = Advice(
    row=2,
    policies=("mlfq", "rr"),
    why="Nobody knows who is short, so SJF and SRTF cannot be used; MLFQ comes near SRTF by what jobs did so far.",
    assumes=("preemption", "what a job did tells what it will do"),
    beware=RESPONSIVE.beware,
    command=CPU,
)
IN_TIME = Advice(
    row=3,
    policies=("edf", "rm"),
    why="If any schedule meets all deadlines, EDF does; RM is the best of fixed priorities for deadlines = periods.",
    assumes=("independent tasks", "one processor", "preemption, switches free", "worst-case execution times known"),
    beware=(
        "model and analyse the task set first: fairq analyze SCENARIO.yaml",
        "overloaded, EDF lets anybody miss; under RM those whose response-time analysis fails",
        "locks need a protocol: inheritance, or a ceiling",
    ),
    command=RECURRING,
)
WHOLE_IN_TIME = Advice(
    row=3,
    policies=("priority:preemptive=false",),
    why="Fixed priorities, the nearest deadline the most urgent, among whole jobs.",
    assumes=("the longest less urgent job is short beside every deadline",),
    beware=("one long job makes urgent ones late: no utilisation bound holds, and EDF is no longer optimal",),
    command="fairq sim cpu --task A:0:7:priority=1,deadline=20 --task B:1:2:priority=2,deadline=10 {policies}",
)
PROPORTIONAL = Advice(
    row=4,
    policies=("stride", "cfs", "eevdf"),
    why="Who has had the least service for its weight goes next; EEVDF also serves short requests early.",
    assumes=("preemption at the end of a quantum",),
    beware=(
        "decide what sleeping and waking do to a share: stride keeps what is owed, CFS gives bounded credit, EEVDF lag",
        "the error is about a quantum; lottery's grows with the square root of time",
    ),
    command=CPU,
)
WHOLE_JOBS = Advice(
    row=None,
    policies=("sfq", "request-rr"),
    why="Whole jobs in turn: SFQ evens out what was used, request round robin how many jobs there were.",
    assumes=("what a job took is known afterwards",),
    beware=("nobody begins before the running job ends, so one long job delays everybody",),
    command=CPU,
)
PACKETS = Advice(
    row=5,
    policies=("drr", "sfq", "wf2q"),
    why="DRR shares a link among very many flows in constant time for each packet, with no tags and no sorting.",
    assumes=("every quantum is at least the largest packet", "lengths are known when a packet is chosen"),
    beware=(
        "a quantum below the largest packet makes visits that send nothing; a large one makes others wait",
        "delay grows with the number of flows; WF2Q bounds it at O(log flows), SFQ needs no constant rate",
    ),
    command=LINK,
)
ESTIMATED_PACKETS = Advice(
    row=None,
    policies=("sfq",),
    why="SFQ charges after it has chosen, so a wrong length moves a flow's next turn and not this one.",
    assumes=("what was sent is known afterwards",),
    beware=("a packet may have to wait for one of each other flow",),
    command=LINK,
)
DELAY_BOUND = Advice(
    row=None,
    policies=("wf2q", "wfq", "virtual-clock"),
    why="A flow with a reserved share has a bound on the delay of each packet, whatever the others send.",
    assumes=("a constant rate", "lengths are known", "arrivals of the flow itself are bounded (a leaky bucket)"),
    beware=("a varying rate voids these bounds", "virtual clock punishes a flow that used idle capacity"),
    command=LINK,
)
SEVERAL = Advice(
    row=6,
    policies=("drf",),
    why="Max-min fairness of the largest share that each user has of any resource; nobody gains by lying about needs.",
    assumes=("demands of a task are known", "tasks are small beside the cluster"),
    beware=("placing tasks on machines is another problem", "misfit=stop idles for a large task, skip may starve it"),
    command=CLUSTER,
)
LLM_ROUTER = Advice(
    row=7,
    policies=("sfq",),
    why="SFQ on an estimated cost chooses first and charges afterwards, so the output's length need not be known.",
    assumes=("one scheduler for each pool", "a positive cost fixed at dispatch", "weights stay as they are"),
    beware=(
        "the guarantee is of estimated cost in order of dispatch: not of GPU time, of memory, or of single deadlines",
        "calibrate estimates slowly for future requests, or carry errors on with settlement: forward",
    ),
    command=ROUTER,
)
LLM_SHORTEST = Advice(
    row=1,
    policies=("shortest",),
    why="The cheapest head first lowers the mean wait; each tenant's own order is kept.",
    assumes=("costs are estimated well", "tenants are trusted"),
    beware=("long requests starve", "who sends short requests, or claims to, takes over"),
    command=ROUTER,
)
TOKENS = Advice(
    row=8,
    policies=("vtc",),
    why="VTC charges each token when it comes out, so the length of an answer need not be known or guessed.",
    assumes=(
        "the engine's scheduler can be changed",
        "continuous batching without preemption",
        "a cost function of tokens",
    ),
    beware=(
        "two users can differ by what a full batch holds, however long one looks",
        "predicted lengths (vtc-predict) lower the usual difference, not the worst one",
    ),
    command=ENGINE,
)
PREFIXES = Advice(
    row=9,
    policies=("dlpm", "d2lpm"),
    why="DLPM serves the longest cached prefix while a user's quantum lasts; D2LPM does the same across workers.",
    assumes=(
        "the engine's scheduler can be changed",
        "requests share prefixes",
        "D2LPM places requests, with DLPM in each worker",
    ),
    beware=("the quantum trades fairness for locality: the larger it is, the more service may differ",),
    command=FLEET,
)
TARGETS = Advice(
    row=10,
    policies=("equinox",),
    why="Tokens alone do not tell latency or use of the hardware; several measured or predicted counters are combined.",
    assumes=("latency and load are measured", "a predictor that is checked"),
    beware=(
        "errors of prediction and the weights of the parts need watching all the time",
        "no proven bound: targets are aimed at, and no hard deadline is kept for certain",
    ),
    command=ENGINE,
)
HIERARCHY = Advice(
    row=None,
    policies=("hierarchical",),
    why="Organisations share first, the users of each among themselves: an idle share goes to the siblings.",
    assumes=("names are paths: org/team/user",),
    beware=("a user's share depends on who else of its organisation is there",),
    command=ROUTER.replace("A:", "x/a:").replace("B:", "x/b:").replace("{", "--tenant y:cost=4,count=8 {"),
)


SHARING = (PACKETS, ESTIMATED_PACKETS, LLM_ROUTER, TOKENS, PREFIXES)
AIMS = {
    "completion": "early completion on average",
    "response": "an early begin",
    "deadlines": "deadlines",
    "slo": "latency targets",
}


def advise(answers: Mapping[str, str]) -> list[Advice]:
    """What fits the answers, the best first. Where nothing here aims at the objective, that is said."""
    layer, objective = answers["layer"], answers["objective"]
    if layer == "cluster" or answers["resources"] == "several":
        return [SEVERAL if objective == "share" else _beside(SEVERAL, objective)]
    found = {"cpu": _cpu, "link": _link, "router": _router, "engine": _engine}[layer](objective, answers)
    if answers["subject"] == "organisation" and objective == "share" and layer in ("link", "router"):
        found.append(HIERARCHY)
    if objective == "completion" and found[0] in SHARING:
        found[0] = _beside(found[0], objective)
    return found


def _beside(advice: Advice, objective: str) -> Advice:
    return replace(advice, beware=(f"it divides; no policy here aims at {AIMS[objective]}", *advice.beware))


def _cpu(objective: str, answers: Mapping[str, str]) -> list[Advice]:
    divisible = answers["preemption"] == "yes"
    if objective == "deadlines" or answers["deadlines"] != "none":
        return [IN_TIME if divisible else WHOLE_IN_TIME]
    if objective == "completion" and answers["sizes"] != "unknown":
        return [SHORTEST if divisible else UNINTERRUPTED]
    if not divisible:
        return [WHOLE_JOBS]
    if objective == "completion":
        return [UNKNOWN_SIZES]
    return [PROPORTIONAL] if objective == "share" else [RESPONSIVE]


def _link(objective: str, answers: Mapping[str, str]) -> list[Advice]:
    if answers["sizes"] != "exact":
        return [ESTIMATED_PACKETS]
    return [DELAY_BOUND, PACKETS] if objective in ("deadlines", "response", "slo") else [PACKETS]


def _router(objective: str, answers: Mapping[str, str]) -> list[Advice]:
    if objective in ("slo", "deadlines") or answers["deadlines"] != "none":
        return [TARGETS, LLM_ROUTER]
    if objective == "completion" and answers["sizes"] != "unknown":
        return [LLM_SHORTEST, LLM_ROUTER]
    return [PREFIXES, LLM_ROUTER] if answers["locality"] == "yes" else [LLM_ROUTER]


def _engine(objective: str, answers: Mapping[str, str]) -> list[Advice]:
    if objective in ("slo", "deadlines") or answers["deadlines"] != "none":
        return [TARGETS]
    return [PREFIXES] if answers["locality"] == "yes" else [TOKENS]
