"""The policies as a list: what each is fair in, what it must be told, where it can run. Read from the policies."""

from importlib import import_module
from re import search

from msgspec import Struct

from fairq.core.clients import ClientPolicy
from fairq.core.errors import UnknownName
from fairq.core.param import Param
from fairq.core.policy import Need, Policy, Unit
from fairq.form import docstring
from fairq.policies import ALIASES, POLICIES
from fairq.sim.scenario import LAYERS

GATEWAY = frozenset({Need.SIZE})
"""What a gateway knows: an estimate of a request's cost."""

TRIES = {
    "cpu": "fairq sim cpu --task A:0:7 --task B:1:4 --task C:2:1 --task D:4:3 --policy {policy}",
    "link": "fairq sim link --packet A:0:8:count=3 --packet B:0:2:count=7 --policy {policy}",
    "router": "fairq sim router --tenant A:cost=8,count=3 --tenant B:cost=2,count=7 --policy {policy}",
    "engine": "fairq sim engine --request A:0:256:64:count=9 --request B:0:64:16:count=9 --policy {policy}",
    "cluster": "fairq sim cluster --capacity cpu=9,mem=18 --user A:cpu=1,mem=4 --user B:cpu=3,mem=1 --policy {policy}",
}
RECURRING = "fairq sim cpu --periodic T1:5:2 --periodic T2:7:4 --policy {policy}"
UNIT = "Unit of fairness: "


class Entry(Struct, frozen=True, kw_only=True):
    """One policy.

    title, citation   its name and rule in a line, and where it is from
    unit              what it is fair in; fairness: the same in a sentence
    guarantees        what it promises, and on what assumptions
    needs             what a layer must provide; layers: those which do, its own first
    keeps_order       are the jobs of one flow served in order of arrival?
    text              all that is written about it
    example           a command that tries it
    """

    name: str
    aliases: list[str]
    title: str
    citation: str | None
    unit: str
    fairness: str
    guarantees: str
    needs: list[str]
    layers: list[str]
    keeps_order: bool
    params: list[Param]
    text: str
    example: str


def entry(name: str) -> Entry:
    """By name or alias. Raises UnknownName."""
    name = ALIASES.get(name, name)
    if name not in POLICIES:
        raise UnknownName("policy", name, [*POLICIES, *ALIASES])
    policy = POLICIES[name]
    text = docstring(policy.__module__)
    paragraphs = text.split("\n\n")
    opening = " ".join(paragraphs[0].split())
    cited = search(r" \(([^)]+)\)", opening)
    promises = next(" ".join(one.split()) for one in paragraphs if one.startswith(UNIT))
    fairness, _, guarantees = promises.removeprefix(UNIT).partition(". ")
    layers = where(policy)
    example = RECURRING if Need.DEADLINE in policy.needs else TRIES[layers[0]]
    return Entry(
        name=name,
        aliases=[alias for alias, meant in ALIASES.items() if meant == name],
        title=opening.replace(cited[0], "", 1) if cited else opening,
        citation=cited[1] if cited else None,
        unit=policy.unit.value,
        fairness=fairness,
        guarantees=guarantees,
        needs=sorted(need.value for need in policy.needs),
        layers=layers,
        keeps_order=policy.keeps_order,
        params=list(policy.params),
        text=text,
        example=example.format(policy=name),
    )


def entries(layer: str | None = None) -> list[Entry]:
    """All of them, or those that run on one layer, in the order of the registry. Raises UnknownName."""
    if layer not in (None, *provided(), "gateway"):
        raise UnknownName("--layer", str(layer), (*provided(), "gateway"))
    found = [entry(name) for name in POLICIES]
    return found if layer is None else [one for one in found if layer in one.layers]


def where(policy: type[Policy]) -> list[str]:
    """The layers that can give it what it needs, the one it is made for first."""
    found = [layer for layer, provides in (provided() | {"gateway": GATEWAY}).items() if policy.needs <= provides]
    of_flows = policy.keeps_order and policy.unit is not Unit.ORDER and not issubclass(policy, ClientPolicy)
    return sorted(found, key=lambda layer: layer != "router") if of_flows else found


def provided() -> dict[str, frozenset[Need]]:
    """What each simulated layer gives a policy; without layers that are made of others, as a fleet is of engines."""
    runs = {
        layer: import_module(model.partition(":")[0].removesuffix("scenario") + "run")
        for layer, model in LAYERS.items()
    }
    return {layer: run.PROVIDES for layer, run in runs.items() if hasattr(run, "PROVIDES")}
