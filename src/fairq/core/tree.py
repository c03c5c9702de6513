"""A tree of flow policies: its classes, whom each knows, and what stands for a class in the one above (TreePolicy)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from fairq.core.errors import check
from fairq.core.job import Flow, Job
from fairq.core.layer_defaults import ROOMY
from fairq.core.policy import Layer, Pick, Policy, Time
from fairq.core.queues import FlowPolicy

ROOT = ""
NOBODY = "\0"  # no flow's name
ONE = Fraction(1)

Place = tuple[str, str]
"""A class, and the child of it that is meant. The class of children of `org/team` is `org/team/`."""


def way(flow: str) -> list[Place]:
    """From the root to the flow's own jobs: org/user -> (root, org), (org/, org/user), (org/user/, org/user)."""
    ends = [at for at, letter in enumerate(flow) if letter == "/"] + [len(flow)]
    names = [flow[:end] for end in ends]
    return [*zip([ROOT, *(name + "/" for name in names)], [*names, flow], strict=True)]


class TreePolicy(Policy):
    """Every class has a policy, `policy_of(class)`, to which each child is one flow.

    While anything below a child that is a class waits, one token waits for it in the class. A subclass moves jobs and
    tokens: it arrives, cancels, selects, commits and charges.
    """

    keeps_order = True

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.tree: dict[str, FlowPolicy] = {}
        self.weights: dict[str, Fraction] = {}  # of all flows that are known
        self.users: dict[str, int] = {}  # class -> how many known flows are in it
        self.jobs: dict[str, Job] = {}  # that wait
        self.tokens = 0

    def policy_of(self, name: str) -> FlowPolicy:
        """A new one for the class of that name; "" is the root."""
        raise NotImplementedError

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.open_class(ROOT)

    def open_class(self, key: str) -> FlowPolicy:
        """`key` is met for the first time."""
        node = self.policy_of(key.removesuffix("/"))

        def cost(token: Job) -> int:
            """Of its own job, or of the one that the child would pick now."""
            if token.flow + "/" == key:
                return self.layer.cost(self.jobs[token.id])
            below = self.tree[token.flow + "/"]
            step = below.select(0, ROOMY)
            assert isinstance(step, Pick)
            return below.layer.cost(step.job)

        node.bind(replace(self.layer, cost=cost))
        self.tree[key], self.users[key] = node, 0
        return node

    def token(self, child: str) -> Job:
        """What waits for a class in the class above: one while anything below it waits."""
        self.tokens += 1
        return Job(id=str(self.tokens), flow=child)

    # Flows
    def flow_changed(self, flow: Flow, now: Time) -> None:
        new = flow.id not in self.weights
        self.weights[flow.id] = flow.weight
        for key, child in way(flow.id):
            node = self.tree.get(key) or self.open_class(key)
            self.users[key] += new
            own = child + "/" == key
            node.flow_changed(Flow(id=child, weight=ONE if own else self.weights.get(child, ONE)), now)

    def forget(self, flow: str) -> None:
        del self.weights[flow]
        gone = True  # is nobody known below this place any more?
        for key, child in reversed(way(flow)):
            node = self.tree[key]
            if gone:
                node.forget(child)
            elif child == flow:
                node.flow_changed(Flow(id=child), 0)
            self.users[key] -= 1
            gone = not self.users[key] and key != ROOT
            if gone:
                del self.tree[key], self.users[key]

    def flow_open(self, flow: str, open_: bool, now: Time) -> None:
        for key, child in reversed(way(flow)):
            node = self.tree[key]
            node.flow_open(child, open_, now)
            open_ = can_serve(node)

    # What shells read
    def waiting(self) -> int:
        return len(self.jobs)

    def backlogged(self) -> Sequence[str]:
        return sorted(key[:-1] for key, node in self.tree.items() if key and node.is_backlogged(key[:-1]))

    def is_backlogged(self, flow: str) -> bool:
        key, child = way(flow)[-1]
        return key in self.tree and self.tree[key].is_backlogged(child)

    def contended(self, flow: str) -> bool:
        return any(key in self.tree and self.tree[key].contended(child) for key, child in way(flow))

    def show(self) -> Mapping[str, Any]:
        return {"classes": {key or "/": dict(node.show()) for key, node in sorted(self.tree.items())}}

    def state(self) -> dict[str, Any]:
        return {
            "flows": {flow: str(weight) for flow, weight in sorted(self.weights.items())},
            "jobs": list(self.jobs),
            "tokens": self.tokens,
            "classes": {key: node.state() for key, node in sorted(self.tree.items())},
        }

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        for flow, weight in state["flows"].items():
            self.flow_changed(Flow(id=flow, weight=Fraction(weight)), 0)
        self.jobs = {id_: jobs[id_] for id_ in state["jobs"]}
        self.tokens = state["tokens"]
        for key in sorted(self.tree, key=lambda key: key.count("/"), reverse=True):  # a class asks those below it
            tokens = {
                id_: replace(jobs[id_], flow=child) if child + "/" == key else Job(id=id_, flow=child)
                for child, queue in state["classes"][key]["queues"].items()
                for id_ in queue
            }
            self.tree[key].restore(state["classes"][key], tokens)

    def validate(self) -> None:
        own = 0
        for key, node in self.tree.items():
            node.validate()
            tokens = {child: len(queue) for child, queue in node.queues.items() if queue and child + "/" != key}
            own += node.waiting() - len(tokens)
            for child, count in tokens.items():
                below = self.tree[child + "/"]
                check(count == 1 and below.waiting() > 0, f"{count} tokens of {child} stand for {below.waiting()}")
                check(can_serve(below) == node.is_backlogged(child), f"{child} is wrongly open or closed")
        check(own == len(self.jobs), f"{own} jobs are in queues, {len(self.jobs)} wait")


def can_serve(node: FlowPolicy) -> bool:
    """Is it worth asking? A class with jobs of closed flows only is closed as well; one without any is open."""
    return not node.waiting() or node.contended(NOBODY)
