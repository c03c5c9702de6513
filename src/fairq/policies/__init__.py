"""The policies. Adding one is a file in this folder and a line in POLICIES."""

from collections.abc import Mapping

from fairq.core.errors import ConfigError, UnknownName
from fairq.core.policy import Need, Policy
from fairq.policies.attained_service import AttainedService
from fairq.policies.cfs import CFS
from fairq.policies.dlpm import DLPM
from fairq.policies.drf import DRF
from fairq.policies.drr import DRR
from fairq.policies.edf import EDF
from fairq.policies.eevdf import EEVDF
from fairq.policies.equinox import Equinox
from fairq.policies.fcfs import FCFS
from fairq.policies.gps import GPS
from fairq.policies.hierarchical import Hierarchical
from fairq.policies.lcf import LCF
from fairq.policies.lottery import Lottery
from fairq.policies.lpm import LPM
from fairq.policies.mlfq import MLFQ
from fairq.policies.prefill_drr import PrefillDRR
from fairq.policies.priority import Priority
from fairq.policies.request_rr import RequestRR
from fairq.policies.request_stride import RequestStride
from fairq.policies.rm import RM
from fairq.policies.rpm import RPM
from fairq.policies.rr import RR
from fairq.policies.scfq import SCFQ
from fairq.policies.sfq import SFQ
from fairq.policies.shortest import Shortest
from fairq.policies.sjf import SJF
from fairq.policies.srtf import SRTF
from fairq.policies.stride import Stride
from fairq.policies.virtual_clock import VirtualClock
from fairq.policies.vtc import VTC
from fairq.policies.vtc_predict import VTCPredict
from fairq.policies.wf2q import WF2Q
from fairq.policies.wfq import WFQ
from fairq.policies.windowed import Windowed

POLICIES: dict[str, type[Policy]] = {}
for _policy in (
    *(FCFS, SJF, SRTF, RR, MLFQ, Priority, EDF, RM),
    *(Lottery, Stride, CFS, EEVDF),
    *(RequestRR, Shortest, SFQ),
    *(GPS, WFQ, WF2Q, SCFQ, VirtualClock, DRR, Hierarchical),
    DRF,
    *(VTC, VTCPredict, LCF, RPM, LPM, DLPM, Equinox),
    *(AttainedService, Windowed, RequestStride, PrefillDRR),
):
    if _policy.name in POLICIES:
        raise ValueError(f"two policies are called {_policy.name}")
    POLICIES[_policy.name] = _policy

ALIASES = {"fifo": "fcfs"}


def make(spec: str) -> Policy:
    """NAME or NAME:key=value,key=value -> a policy. Raises ConfigError, which names the key, the value and the rule."""
    name, _, rest = spec.partition(":")
    name = ALIASES.get(name, name)
    if name not in POLICIES:
        raise UnknownName("policy", name, [*POLICIES, *ALIASES])
    given: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        key = key.replace("-", "_")
        if not equals or key in given:
            raise ConfigError("policy", spec, "must be NAME or NAME:key=value,key=value with each key once")
        given[key] = value
    return POLICIES[name](**given)


def spec_of(given: object, comma: str = ",") -> str:
    """The spec of a policy that a file tells as keys and values: {policy: drr, quantum: 3} -> drr:quantum=3.

    A list stands for names by depth, keys and values for names by class (`hierarchical`). Raises ConfigError.
    """
    if not isinstance(given, Mapping):
        return str(given)
    name = given.get("policy")
    if not isinstance(name, str):
        raise ConfigError("policy", name, "missing: {policy: NAME, key: value}")
    items = [f"{key}={_told(value)}" for key, value in given.items() if key != "policy"]
    return f"{name}:{comma.join(items)}" if items else name


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return ";".join(f"{path}={spec_of(node, '+')}" for path, node in value.items())
    if isinstance(value, list | tuple):
        return "/".join(spec_of(node, "+") for node in value)
    return str(value)


def make_for(spec: str, provides: frozenset[Need]) -> Policy:
    """The same, for a layer that provides so much; ConfigError names the policies that fit it."""
    fitting = [name for name, policy in POLICIES.items() if policy.needs <= provides]
    name = spec.partition(":")[0]
    if ALIASES.get(name, name) not in POLICIES:
        raise UnknownName("policy", name, [*fitting, *ALIASES])
    policy = make(spec)
    missing = policy.needs - provides
    if missing:
        rule = f"needs {', '.join(sorted(missing))}, which is not known here; {', '.join(sorted(fitting))} do without"
        raise ConfigError("policy", spec, rule)
    return policy
