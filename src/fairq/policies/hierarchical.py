"""Hierarchical fair queueing (Goyal, Vin, Cheng 1996, section 3; link sharing): a tree of classes, a policy in each.

    tree    a flow `org/team/user` is a child of the class org/team, that of org, and that of the root
    select  the root's policy picks a child, that child's policy one of its own, down to a flow; its head goes
    charge  the cost is charged to every class on the way

To the policy of a class each child is one flow, which has a job waiting as long as anything below it waits.
`nodes=sfq/drr:quantum=3` names the policies by depth, the last of them for all that is deeper; `classes=org=drr` that
of one class. A class that was given no weight weighs 1; jobs of a flow that is a class too are one more child of it, of
weight 1.

Unit of fairness: that of each node, among its children. With SFQ everywhere: children of one class that stay
backlogged differ by at most a largest job of each in normalized service, whatever share of the link the class itself
gets, for SFQ needs no constant rate; so a class's idle share goes to its siblings first. O(depth) picks for each job.
"""

from msgspec.structs import replace

from fairq.core.job import Job
from fairq.core.policy import Cause, Decision, Need, Param, Pick, Time, Unit, View, Why
from fairq.core.queues import FlowPolicy
from fairq.core.tree import ROOT, TreePolicy, can_serve, way
from fairq.policies.classes import Classes


class Hierarchical(TreePolicy):
    name = "hierarchical"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.SIZE})
    params = (
        Param(name="nodes", default="sfq", text="param.hierarchical.nodes"),
        Param(name="classes", default="", text="param.hierarchical.classes"),
    )
    nodes: str
    classes: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.kinds = Classes(self.nodes, self.classes)

    def policy_of(self, name: str) -> FlowPolicy:
        return self.kinds.policy(name)

    # Decisions
    def select(self, now: Time, view: View) -> Decision:
        key, steps = ROOT, []
        while True:
            step = self.tree[key].select(now, view)
            if not isinstance(step, Pick):
                return step
            steps.append(step)
            child = step.job.flow
            if child + "/" == key:
                reasons: dict[str, int | str] = {one.job.flow: one.why.code for one in steps[:-1]}
                return Pick(self.jobs[step.job.id], Why("class-by-class", reasons), steps)
            key = child + "/"

    def commit(self, decision: Decision, now: Time) -> None:
        if not isinstance(decision, Pick):
            return
        plan: list[Pick] = decision.plan
        nodes = [self.tree[key] for key, _ in way(decision.job.flow)]
        steps = list(zip(nodes, plan, strict=True))
        stays = False  # is anything left below?
        for node, step in reversed(steps):
            if stays:
                node.arrive(self.token(step.job.flow), now)
            stays = node.waiting() > 1
        for node, step in steps:
            node.commit(step, now)
        del self.jobs[decision.job.id]

    def charge(self, job: Job, amount: int, now: Time) -> None:
        below = None
        for key, child in reversed(way(job.flow)):
            node = self.tree[key]
            if below:
                node.flow_open(child, can_serve(below), now)
            node.charge(replace(job, flow=child), amount, now)
            below = node

    # Who waits
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.jobs[job.id] = job
        below, came = None, True
        for key, child in reversed(way(job.flow)):
            node = self.tree[key]
            token = self.token(child) if below else replace(job, flow=child)
            if below:
                node.flow_open(child, can_serve(below), now)
            if came:
                came = not node.waiting()
                node.arrive(token, now, cause)
            below = node

    def cancel(self, job: Job, now: Time) -> None:
        del self.jobs[job.id]
        below, gone = None, True
        for key, child in reversed(way(job.flow)):
            node = self.tree[key]
            if gone:
                node.cancel(node.head(child) if below else replace(job, flow=child), now)
                gone = not node.waiting()
            if below:
                node.flow_open(child, can_serve(below), now)
            below = node
