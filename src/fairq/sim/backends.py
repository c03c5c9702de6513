"""Where a study's runs are done: this machine's cores, or a cluster of Ray or Dask.

Each backend is given tasks, (key, setting), and gives back what `work` makes of them as they finish.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairq.core.errors import ConfigError
from fairq.sim.sweep import Setting
from fairq.tables import Row

Task = tuple[str, Setting]
Done = tuple[str, Row]
Work = Callable[[str, Setting], Done]

EXTRAS = {"loky": "sweep", "threading": "sweep", "ray": "ray", "dask": "dask"}


def done(tasks: Sequence[Task], work: Work, jobs: int, backend: str) -> Iterator[Done]:
    """jobs: processes; -1 is as many as there are cores. Raises ConfigError: the library is not installed."""
    if jobs == 1 or len(tasks) == 1:
        return (work(*task) for task in tasks)
    return {"ray": _ray, "dask": _dask}.get(backend, _joblib)(tasks, work, jobs, backend)


@contextmanager
def _needed(backend: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        rule = f"needs {error.name}, which is not installed: pip install 'fairq[{EXTRAS[backend]}]'"
        raise ConfigError("--backend", backend, rule) from None


def _joblib(tasks: Sequence[Task], work: Work, jobs: int, backend: str) -> Iterator[Done]:
    with _needed(backend):
        import joblib  # type: ignore[import-untyped]
    with joblib.parallel_config(backend=backend):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from parallel(joblib.delayed(work)(*task) for task in tasks)


def _ray(tasks: Sequence[Task], work: Work, jobs: int, backend: str) -> Iterator[Done]:
    """In the cluster at RAY_ADDRESS, or else on this machine."""
    with _needed(backend):
        import ray  # type: ignore[import-not-found]
    local: dict[str, Any] = {"num_cpus": jobs if jobs > 0 else os.cpu_count(), "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **({} if os.environ.get("RAY_ADDRESS") else local))
    try:
        task_of = ray.remote(work)
        pending = [task_of.remote(*task) for task in tasks]
        while pending:
            (first,), pending = ray.wait(pending)
            yield ray.get(first)
    finally:
        ray.shutdown()


def _dask(tasks: Sequence[Task], work: Work, jobs: int, backend: str) -> Iterator[Done]:
    """In the cluster at DASK_SCHEDULER_ADDRESS, or else on this machine."""
    with _needed(backend):
        from distributed import Client, as_completed  # type: ignore[import-not-found]
    local: dict[str, Any] = {
        "n_workers": jobs if jobs > 0 else os.cpu_count(),
        "threads_per_worker": 1,
        "dashboard_address": None,
    }
    with Client(**({} if os.environ.get("DASK_SCHEDULER_ADDRESS") else local)) as client:
        for future in as_completed([client.submit(work, *task, pure=False) for task in tasks]):
            yield future.result()
