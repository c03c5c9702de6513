"""Independent ways to know a schedule: the article's own pseudo-code tick by tick, and brute force."""

from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import permutations
from math import ceil

Task = tuple[int, int]
"""(arrival, burst); a task is its index, which is also the order of input."""


def round_robin(tasks: list[Task], quantum: int) -> list[int | None]:
    """The article's loop: at a boundary arrivals of that instant are queued before the expired task."""
    left = [burst for _, burst in tasks]
    order = deque(sorted(range(len(tasks)), key=lambda task: (tasks[task][0], task)))
    ready: deque[int] = deque()
    line: list[int | None] = []
    running, used = None, 0
    while order or ready or running is not None:
        now = len(line)
        while order and tasks[order[0]][0] <= now:
            ready.append(order.popleft())
        if running is not None and (left[running] == 0 or used == quantum):
            if left[running]:
                ready.append(running)
            running = None
        if running is None and ready:
            running, used = ready.popleft(), 0
        if running is None and not order:
            break
        line.append(running)
        if running is not None:
            left[running] -= 1
            used += 1
    return line


def least(tasks: list[Task], key: Callable[[int, int], int], preemptive: bool) -> list[int | None]:
    """At every tick (or whenever free) the arrived task of least (key(task, left), arrival, input order)."""
    left = [burst for _, burst in tasks]
    line: list[int | None] = []
    running: int | None = None
    while any(left):
        now = len(line)
        if running is None or preemptive or left[running] == 0:
            here = [task for task in range(len(tasks)) if tasks[task][0] <= now and left[task]]
            running = min(here, key=lambda task: (key(task, left[task]), tasks[task][0], task), default=None)
        line.append(running)
        if running is not None:
            left[running] -= 1
    return line


def best_flow_time(tasks: list[Task]) -> int:
    """The least total flow time of any preemptive schedule on one processor, by search over all of them."""

    @cache
    def cost(now: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        here = [task for task, n in enumerate(left) if n and tasks[task][0] <= now]
        unfinished = sum(1 for task, n in enumerate(left) if n and tasks[task][0] <= now)
        if not here:
            return cost(now + 1, left)
        choices = (cost(now + 1, (*left[:task], left[task] - 1, *left[task + 1 :])) for task in here)
        return unfinished + min(choices)

    return cost(0, tuple(burst for _, burst in tasks))


def best_order_wait(bursts: list[int]) -> int:
    """The least total wait of any order of jobs that are all there at 0."""
    return min(sum(sum(order[:n]) for n in range(len(order))) for order in permutations(bursts))


def response_time(tasks: list[tuple[int, int]], index: int, limit: int, blocking: int = 0) -> int | None:
    """R = C + B + sum over more urgent j of ceil(R / T_j) C_j, from below; None past `limit`. (wcet, period) each."""
    wcet = tasks[index][0] + blocking
    response = wcet
    while response <= limit:
        longer = wcet + sum(ceil(response / period) * c for c, period in tasks[:index])
        if longer == response:
            return response
        response = longer
    return None


def aged(tasks: list[Task], urgency: list[int], aging: int, quantum: int) -> list[int | None]:
    """Fixed priorities with aging, looking at every tick: what a task has gained while it waited is its for a turn.

    quantum  0: a turn ends with the task, or when a more urgent one takes its place; then the rest of it is kept
    """
    left = [burst for _, burst in tasks]
    line: list[int | None] = []
    since: dict[int, int] = {}  # of those that wait
    place: dict[int, tuple[int, int]] = {}  # in the queue: when it came there, and after how many others
    used = [0] * len(tasks)
    running, worth = None, 0

    def worth_of(task: int) -> int:
        return urgency[task] + (len(line) - since[task]) // aging

    while any(left):
        now = len(line)
        coming = [task for task in range(len(tasks)) if tasks[task][0] == now]
        if running is not None and left[running] == 0:
            running = None
        elif running is not None and quantum and used[running] == quantum:
            coming.append(running)
            used[running], running = 0, None
        for task in coming:
            since[task], place[task] = now, (now, len(place) + coming.index(task))
        if running is not None and any(worth_of(task) > worth for task in since):
            since[running], running = now, None
        if running is None and since:
            running = min(since, key=lambda task: (-worth_of(task), place[task]))
            worth = worth_of(running)
            del since[running]
        line.append(running)
        if running is not None:
            left[running] -= 1
            used[running] += 1
    return line
