"""Deficit round robin over prompts (after Shreedhar, Varghese, SIGCOMM 1995): a baseline that ignores answers.

The rule is DRR's with the prompt's tokens as the size of a request.

Unit of fairness: normalized input tokens. Clients whose answers are long get as much more as their answers are longer.
"""

from fairq.core.job import Generation, Job
from fairq.core.policy import Layer, Need
from fairq.policies.drr import DRR


def prompt_of(job: Job) -> int:
    assert isinstance(job, Generation)
    return job.prompt


class PrefillDRR(DRR):
    name = "prefill-drr"
    needs = frozenset({Need.TOKENS})

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.cost_of = prompt_of
