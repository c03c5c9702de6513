"""Which names get a place of their own when there is room for few: those with most traffic lately."""

from collections.abc import Callable

OTHER = "other"
MARGIN = 8  # a newcomer needs twice the traffic of the least, and so much more: places do not flap
SPARE = 8  # candidates remembered for each place
HALVE_EVERY = 256  # counts for each place, after which older traffic weighs half


class Heaviest:
    """
    At most `places` names, and a bounded memory of candidates. O(1) per count; O(places) when a name takes a place.

    gave_way(name)  called when it lost its place
    """

    def __init__(self, places: int, gave_way: Callable[[str], None] = lambda name: None) -> None:
        self.named: dict[str, int] = {}
        self._candidates: dict[str, int] = {}
        self.places, self._gave_way = places, gave_way
        self._least = 0  # a lower bound of the traffic of a name with a place
        self._until_halved = HALVE_EVERY * places

    def count(self, name: str, traffic: int = 1) -> None:
        """It was seen again. It may take a place."""
        named = self.named
        if name in named:
            named[name] += traffic
        elif len(named) < self.places and name != OTHER:
            named[name] = self._candidates.pop(name, 0) + traffic
            self._least = 0
        elif name != OTHER:
            total = self._candidates[name] = self._candidates.get(name, 0) + traffic
            if total > 2 * self._least + MARGIN:
                self._challenge(name, total)
            if len(self._candidates) > SPARE * self.places:
                self._thin()
        self._until_halved -= 1
        if self._until_halved <= 0:
            self._halve()

    def _challenge(self, name: str, total: int) -> None:
        least = min(self.named, key=lambda each: (self.named[each], each))
        self._least = self.named[least]
        if total > 2 * self._least + MARGIN:
            self._candidates[least] = self.named.pop(least)
            self.named[name] = self._candidates.pop(name)
            self._gave_way(least)

    def _thin(self) -> None:
        """Forget the lighter half of the candidates."""
        ranked = sorted(self._candidates.items(), key=lambda item: (-item[1], item[0]))
        self._candidates = dict(ranked[: len(ranked) // 2])

    def _halve(self) -> None:
        self.named = {name: traffic // 2 for name, traffic in self.named.items()}
        self._candidates = {name: traffic // 2 for name, traffic in self._candidates.items() if traffic > 1}
        self._least //= 2
        self._until_halved = HALVE_EVERY * self.places
