"""What a pool's scheduler is built from."""

from msgspec import Struct

from fairq.core.cost import CostModel
from fairq.core.job import Flow


class Setup(Struct, frozen=True, kw_only=True):
    """It stands in the head of every ledger segment.

    policy             NAME or NAME:key=value,key=value
    wait_for_upstream  ns a request may wait while no upstream is usable
    """

    pool: str = "default"
    policy: str = "sfq"
    settlement: str = "fixed"
    placement: str = "least-loaded"
    cost: CostModel = CostModel()
    flows: list[Flow] = []
    default_flow: Flow = Flow(id="")
    wait_for_upstream: int = 0
