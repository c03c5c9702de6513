"""Clients that come and go with what they are owed: the virtual time of EEVDF (Stoica, Abdel-Wahab, TR-95-22).

    v_i   += used / w_i                   a client's normalized service
    V      = sum of w_i v_i / sum of w_i  over the clients here; with one running, dV = dt / sum of w
    lag_i  = w_i (V - v_i)                what it is owed; all lags add up to 0
    leave    lag_i is kept, within a limit
    join     v_i such that the lag is that again once it has joined: v_i = V - (lag_i / w_i)(W + w_i) / W,
             W = the others' weight (as Linux does it; the report lowers V by lag_i / (W + w_i) instead)
    weight   changes, lag_i does not

All of it is exact until the denominator of a v_i would pass 256 bits, which takes dozens of joins with weights that do
not divide one another; from then on v_i is rounded down to a grid of 2**-128 at a join, and a lag is off by at most
w_i * 2**-128 per join. (Exact rationals would grow without end.)
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.memory import recall, remembered
from fairq.core.number import Number, bounded, quotient

CLIENT = ("asked", "begun", "due", "owed", "v", "weight")
LAGS = ("resting", "service", "weight")


class Client:
    """What is kept of a client, in one place: of thousands that take turns nothing is left in a cache.

    v, weight   while it is here
    owed        V - v when it left, None before that
    asked       r, how long a request is, in ticks
    begun, due  ve and vd of the present one
    """

    __slots__ = CLIENT

    def __init__(self) -> None:
        self.v: Number = 0
        self.weight: Number = 1
        self.owed: Number | None = None
        self.asked = 0
        self.begun: Number = 0
        self.due: Number = 0

    def ask(self, ticks: Number) -> None:
        """A request begins."""
        self.begun = self.v
        self.due = self.v + quotient(ticks, self.weight)

    def state(self) -> dict[str, Any]:
        return remembered(self, CLIENT)

    def restore(self, state: Mapping[str, Any]) -> None:
        recall(self, CLIENT, state)


class Lags:
    """service  the sum of w v over the clients here; weight: of w
    resting  V when nobody is
    """

    def __init__(self) -> None:
        self.service: Number = 0
        self.weight: Number = 0
        self.resting: Number = 0

    @property
    def virtual_time(self) -> Number:
        return quotient(self.service, self.weight) if self.weight else self.resting

    def lag(self, client: Client) -> Number:
        return quotient(client.weight * (self.virtual_time - client.v), 1)

    def serve(self, client: Client, amount: int) -> None:
        self.service += amount
        client.v += quotient(amount, client.weight)

    def join(self, client: Client, weight: Number) -> None:
        others, mean = self.weight, self.virtual_time
        self.weight = quotient(others + weight, 1)
        if others and client.owed:
            mean -= quotient(client.owed * self.weight, others)
        client.v, client.weight = bounded(mean), weight
        self.service += quotient(weight * client.v, 1)

    def leave(self, client: Client, limit: Number) -> None:
        """`limit`: the most that V - v may be later, either way."""
        lead, most = self.service - client.v * self.weight, limit * self.weight  # V - v and its limit, times all weight
        client.owed = limit if lead >= most else -limit if lead <= -most else quotient(lead, self.weight)
        total, self.weight = self.weight, quotient(self.weight - client.weight, 1)
        if not self.weight:
            self.resting = quotient(self.service, total)
        self.service = quotient(self.service - client.weight * client.v, 1)

    def reweigh(self, client: Client, old: Number, new: Number, here: bool) -> None:
        """Distances from V shrink as the weight grows."""
        if client.owed is not None:
            client.owed = quotient(client.owed * old, new)
        if here:
            mean = self.virtual_time
            tags = [bounded(mean - quotient((mean - tag) * old, new)) for tag in (client.v, client.begun, client.due)]
            self.weight = quotient(self.weight + new - old, 1)
            self.service += quotient(new * tags[0], 1) - quotient(old * client.v, 1)
            client.v, client.begun, client.due = tags
            client.weight = new

    def state(self) -> dict[str, Any]:
        return remembered(self, LAGS)

    def restore(self, state: Mapping[str, Any]) -> None:
        recall(self, LAGS, state)
