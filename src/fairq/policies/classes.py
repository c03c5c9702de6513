"""Which policy stands in which class of a tree: by depth, and by name where a class is named.

    nodes    sfq/drr:quantum=3               by depth, the root's first; the last of them for all that is deeper
    classes  org=request-rr;org/team=sfq     of single classes

A node is NAME or NAME:key=value+key=value.
"""

from fairq.core.errors import ConfigError, UnknownName
from fairq.core.queues import FlowPolicy
from fairq.policies.drr import DRR
from fairq.policies.request_rr import RequestRR
from fairq.policies.scfq import SCFQ
from fairq.policies.sfq import SFQ

NODES: dict[str, type[FlowPolicy]] = {policy.name: policy for policy in (SFQ, SCFQ, DRR, RequestRR)}


class Classes:
    """Raises ConfigError, which names the parameter, for what no node can be."""

    def __init__(self, nodes: str, classes: str) -> None:
        self.by_depth = nodes.split("/")
        for spec in self.by_depth:
            node("hierarchical.nodes", spec)
        self.by_name: dict[str, str] = {}
        for item in filter(None, classes.split(";")):
            name, equals, spec = item.partition("=")
            if not equals or not all(name.split("/")) or name in self.by_name:
                raise ConfigError("hierarchical.classes", classes, "must be PATH=NODE;PATH=NODE with each path once")
            node("hierarchical.classes", spec)
            self.by_name[name] = spec

    def policy(self, name: str) -> FlowPolicy:
        """A new one for a class; "" is the root, "org/team" is two deep."""
        depth = len(name.split("/")) if name else 0
        spec = self.by_name.get(name) or self.by_depth[min(depth, len(self.by_depth) - 1)]
        return node("hierarchical", spec)


def node(key: str, spec: str) -> FlowPolicy:
    name, _, rest = spec.partition(":")
    if name not in NODES:
        raise UnknownName(key, name, NODES)
    given: dict[str, object] = {}
    for item in filter(None, rest.split("+")):
        parameter, equals, value = item.partition("=")
        if not equals or parameter in given:
            raise ConfigError(key, spec, "must be NAME or NAME:key=value+key=value with each key once")
        given[parameter.replace("-", "_")] = value
    return NODES[name](**given)
