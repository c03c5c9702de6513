"""Service of an engine's clients over time, all of them at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairq.sim.engine.drift import INPUT, OUTPUT
from fairq.sim.engine.run import EngineRun

CHUNK = 4_096  # requests; what is held at once is this times the moments


def grown(run: EngineRun, clients: Sequence[str], moments: Sequence[int]) -> Any:
    """clients x moments (ns): service / weight of each until then.

    A prompt counts when it is admitted, an answer evenly from its first token to its last.
    """
    place = {client: index for index, client in enumerate(clients)}
    weights = np.array([float(run.weights()[client]) for client in clients])
    found = np.zeros((len(clients), len(moments)))
    at = np.array(moments, dtype=float)
    calls = [call for call in run.calls if call.admitted is not None and call.job.flow in place]
    for begin in range(0, len(calls), CHUNK):
        told = np.array(
            [
                (
                    place[call.job.flow],
                    call.admitted,
                    call.prompt * INPUT,
                    -1.0 if call.first is None else call.first,
                    -1.0 if call.finish is None else call.finish,
                    call.produced * OUTPUT,
                )
                for call in calls[begin : begin + CHUNK]
            ],
            dtype=float,
        )
        who, admitted, prompt, first, finish, answer = (column[:, None] for column in told.T)
        made = np.clip((at - first) / np.maximum(finish - first, 1.0), 0.0, 1.0)
        given = prompt * (at >= admitted) + np.where(first >= 0, answer * made, 0.0)
        np.add.at(found, who[:, 0].astype(int), given)
    return found / weights[:, None]
