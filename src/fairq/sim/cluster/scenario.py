"""What a cluster simulation is given: how much there is of each resource, and users with tasks."""

from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, broken

MOST_TASKS = 200_000


class Batch(Part):
    """`tasks` tasks that arrive together. Without a duration they never end."""

    tasks: Positive
    arrival: Natural = 0
    duration: Positive | None = None


class User(Part):
    """demand    what each task holds of each resource
    weight    its share
    tasks     how many; None: there is always another one
    batches   instead of tasks, arrival and duration: several joins
    """

    id: Name
    demand: Annotated[dict[Name, Natural], Field(min_length=1)]
    weight: Ratio = Fraction(1)
    tasks: Positive | None = None
    arrival: Natural = 0
    duration: Positive | None = None
    batches: Annotated[tuple[Batch, ...], Field(max_length=MOST_TASKS)] = ()

    @model_validator(mode="after")
    def _is_possible(self) -> "User":
        if not any(self.demand.values()):
            raise broken("must be above 0 for some resource", "demand")
        if self.batches and (wrong := self.model_fields_set & {"tasks", "arrival", "duration"}):
            raise broken("stands in each batch when there are batches", min(wrong))
        return self

    @property
    def endless(self) -> bool:
        return self.tasks is None and not self.batches


class ClusterScenario(Scenario):
    """capacity  resource -> how much there is of it
    horizon   where a run stops; needed where users without end have tasks that end
    """

    layer: Literal["cluster"] = "cluster"
    capacity: Annotated[dict[Name, Positive], Field(min_length=1, max_length=100)]
    users: Annotated[tuple[User, ...], Field(min_length=1, max_length=10_000)]
    horizon: Positive | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "ClusterScenario":
        seen: set[str] = set()
        tasks = 0
        for index, user in enumerate(self.users):
            if user.id in seen:
                raise broken("given twice", "users", index, "id")
            seen.add(user.id)
            for resource, amount in user.demand.items():
                there_is = self.capacity.get(resource)
                if there_is is None:
                    near = get_close_matches(resource, [*self.capacity, *User.model_fields], n=2) or self.capacity
                    rule = f"not in capacity; did you mean {' or '.join(near)}?"
                    raise broken(rule, "users", index, "demand", resource)
                if amount > there_is:
                    raise broken(f"more than the {there_is} there are", "users", index, "demand", resource)
            if user.tasks is None and user.duration and self.horizon is None and not user.batches:
                raise broken("missing (its tasks end), or give a horizon", "users", index, "tasks")
            tasks += self._tasks(user)
        if tasks > MOST_TASKS:
            raise broken(f"{tasks} tasks may start, more than {MOST_TASKS}; take larger units", "users")
        return self

    def _tasks(self, user: User) -> int:
        """How many of its tasks may start at most."""
        if user.batches:
            return sum(batch.tasks for batch in user.batches)
        if user.tasks is not None:
            return user.tasks
        at_once = min(self.capacity[resource] // amount for resource, amount in user.demand.items() if amount)
        if user.duration is None or self.horizon is None:
            return at_once
        return at_once * -(-self.horizon // user.duration)

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.cluster.run import ClusterRun

        return ClusterRun(self, policy, record)
