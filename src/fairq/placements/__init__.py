"""Placements: which upstream serves a picked job."""

from fairq.core.errors import ConfigError, UnknownName
from fairq.core.placement import Placement
from fairq.placements.d2lpm import D2LPM
from fairq.placements.least_loaded import LeastLoaded
from fairq.placements.prefix_affinity import PrefixAffinity

PLACEMENTS: dict[str, type[Placement]] = {placement.name: placement for placement in (LeastLoaded,)}
BY_PREFIX: dict[str, type[Placement]] = {placement.name: placement for placement in (PrefixAffinity, D2LPM)}
"""Those that must know which prompts begin alike: a simulated fleet does, a gateway does not."""


def make(spec: str, *, prefix: bool = False) -> Placement:
    """NAME or NAME:key=value,key=value. `prefix`: the layer knows prompts' blocks.

    Raises UnknownName, which lists the nearest names, ConfigError.
    """
    name, _, rest = spec.partition(":")
    if name in BY_PREFIX and not prefix:
        raise ConfigError("placement", name, "needs the prompts' prefix blocks, which only a simulated fleet knows")
    known = PLACEMENTS | (BY_PREFIX if prefix else {})
    if name not in known:
        raise UnknownName("placement", name, known)
    given: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key in given:
            raise ConfigError("placement", spec, "must be NAME or NAME:key=value,key=value with each key once")
        given[key] = value
    return known[name](**given)
