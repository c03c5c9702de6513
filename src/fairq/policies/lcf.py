"""Least Counter First (a baseline of Sheng et al., OSDI 2024): VTC without the lift.

Unit of fairness: tokens served since the beginning. A client that was away has credit for all of it: when it comes back
it has the engine for itself until its counter has caught up, so nothing is promised to those who stayed.
"""

from fairq.core.counting import Counting


class LCF(Counting):
    name = "lcf"
