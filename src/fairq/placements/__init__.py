"""Placements: which upstream serves a picked job."""

from fairq.core.errors import UnknownName
from fairq.core.placement import Placement
from fairq.placements.least_loaded import LeastLoaded

PLACEMENTS: dict[str, type[Placement]] = {placement.name: placement for placement in (LeastLoaded,)}


def make(name: str) -> Placement:
    """Raises UnknownName, which lists the nearest names."""
    if name not in PLACEMENTS:
        raise UnknownName("placement", name, PLACEMENTS)
    return PLACEMENTS[name]()
